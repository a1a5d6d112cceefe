// SPDX-License-Identifier: Apache-2.0
// Three nodes of two zones on a real API server that serves Cilium's own kinds, with agents of Cilium's, and what must hold of them
// after every step.
import assert from "node:assert/strict";
import { parseAddress, parseCidr, toNumber } from "../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../allocator/ip/ip-range.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Answer, Call, Connection, Stream } from "../../kube/api/connection.ts";
import { NODES, POOLS } from "../../kube/api/resource.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import { CILIUM_NODES, type CiliumMode } from "../../webhook/controllers/cilium/cilium-node.ts";
import { startCilium } from "../../webhook/controllers/cilium/controller.ts";
import type { ControllerDeps } from "../../webhook/controllers/controller.ts";
import { addressesOf, type CiliumAgent, type CiliumObject } from "../cilium/agents.ts";
import { eventually } from "../support/eventually.ts";
import { ControllersCluster } from "./controllers-cluster.ts";
import { type Definition, define } from "./crds.ts";
import { listItems } from "./list-items.ts";

type Json = Readonly<Record<string, unknown>>;

/** With each look: what waits for half a minute waits for some looks. */
const SKIP_MS = 2_000;

export class CiliumCluster {
  readonly cluster: ControllersCluster;
  /** Operators are on it, if nothing else is said. */
  connection: Connection;
  readonly agents = new Map<string, CiliumAgent>(); // node -> its agent, as long as it lives
  readonly #watched = new Map<string, Pick<CiliumAgent, "node" | "used">>(); // those that run by themselves
  readonly #nodes: Client;
  readonly #ciliumNodes: Client;

  private constructor(cluster: ControllersCluster) {
    this.cluster = cluster;
    this.connection = cluster.connection;
    this.#nodes = new Client(cluster.connection, NODES);
    this.#ciliumNodes = new Client(cluster.connection, CILIUM_NODES);
  }

  static async open(definitions: readonly Definition[]): Promise<CiliumCluster> {
    return new CiliumCluster(await ControllersCluster.open((connection) => define(connection, definitions)));
  }

  async close(): Promise<void> {
    await this.cluster.close();
  }

  /** Nothing is left, for the next test. */
  async clear(): Promise<void> {
    await this.cluster.endAll();
    this.agents.clear();
    this.#watched.clear();
    for (const { metadata } of await this.objects()) await this.#remove(this.#ciliumNodes, metadata.name);
    for (const [name] of [...this.cluster.replica.watches.nodes.all()]) await this.#remove(this.#nodes, name);
    for (const block of await this.cluster.all("block")) await this.cluster.store.remove("block", block);
    for (const { record } of await this.cluster.all("pool")) await this.cluster.delete(POOLS, record.name);
    const { cache, watches } = this.cluster.replica;
    await eventually("nothing is left", () => {
      const left = [...cache.blocks(), ...cache.poolRecords(), ...watches.nodes.all()];
      return left.length === 0 || undefined;
    });
  }

  async addPool(name: string, cidrs: readonly string[], spec: Json = {}): Promise<void> {
    const ranges = cidrs.map((cidr) => ({ cidr }));
    const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: 28 } };
    await this.cluster.apply(POOLS, {
      metadata: { name },
      spec: { ranges, nodeCIDRs, cooldown: "30s", ...spec },
    });
    await eventually("the pool is seen", () => this.cluster.replica.cache.pool(name));
  }

  async addNode(name: string, zone: string): Promise<void> {
    await this.#nodes.create({ name }, { metadata: { labels: { zone } } });
  }

  /** As kubectl delete node does, and the garbage collector of Kubernetes after it: the machine is gone, with its agent. */
  async deleteNode(name: string): Promise<void> {
    this.agents.delete(name);
    await this.#remove(this.#nodes, name);
    await this.#remove(this.#ciliumNodes, name);
  }

  /** As another operator left it. */
  async write(name: string, ipam: Json): Promise<void> {
    await this.#ciliumNodes.create({ name }, { spec: { ipam } });
  }

  /** As its agent asks in mode multi-pool; the object is there in a moment. */
  async request(name: string, requested: readonly Json[]): Promise<void> {
    const body = { spec: { ipam: { pools: { requested } } } };
    await eventually(`${name} has an object`, () =>
      this.#ciliumNodes.patch({ name }, { type: "merge", body }),
    );
  }

  async deleteObject(name: string): Promise<void> {
    await this.#remove(this.#ciliumNodes, name);
  }

  async #remove(client: Client, name: string): Promise<void> {
    for (;;) {
      const item = await client.get({ name });
      if (item === undefined || (await client.remove({ name }, item.metadata))) return;
    }
  }

  /** A replica that leads, until it is closed; on a connection of its own, which may die. */
  operate(mode: CiliumMode, connection = this.connection, over: Partial<ControllerDeps> = {}): Controller {
    const { clock } = this.cluster;
    const { random, log } = this.cluster.context;
    const store: Store = openKubernetesStore({ connection, clock, random, log });
    const context = { ...this.cluster.context, store, clock };
    return this.cluster.start((deps) => startCilium(deps, { mode }), { context, connection, ...over });
  }

  async objects(): Promise<readonly CiliumObject[]> {
    const items = await listItems(this.#ciliumNodes);
    return items as readonly CiliumObject[];
  }

  async object(name: string): Promise<CiliumObject | undefined> {
    return (await this.objects()).find(({ metadata }) => metadata.name === name);
  }

  /** The CIDRs that are the node's by the records, given back or not. */
  async cidrs(node: string): Promise<readonly string[]> {
    const blocks = (await this.cluster.all("block")).filter(({ record }) => record.node === node);
    return blocks.filter(({ record }) => record.releasedAt === undefined).map(({ key }) => key);
  }

  /** An agent that runs by itself: what it uses is judged too. */
  watch(agent: Pick<CiliumAgent, "node" | "used">): void {
    this.#watched.set(agent.node, agent);
  }

  /** All agents read and write once, time passes, and nothing is wrong. */
  async step({ mayOverlap = false } = {}): Promise<void> {
    this.cluster.clock.skip(SKIP_MS);
    for (const agent of this.agents.values()) {
      await agent.sync();
      await agent.report();
    }
    if (!mayOverlap) await this.witness();
  }

  /** Steps until the look finds what it looks for. */
  async until(what: string, look: () => Promise<boolean> | boolean, about = {}): Promise<void> {
    await eventually(what, async () => {
      await this.step(about);
      return (await look()) || undefined;
    });
  }

  /** So many pods of the node more have addresses. */
  async grow(node: string, count: number): Promise<readonly string[]> {
    const agent = this.agents.get(node) ?? assert.fail(`${node} has no agent`);
    const got: string[] = [];
    await this.until(`${count} pods of ${node} have addresses`, () => {
      while (got.length < count) {
        const address = agent.add();
        if (address === undefined) return false;
        got.push(address);
      }
      return true;
    });
    return got;
  }

  shrink(node: string, addresses: readonly string[]): void {
    for (const address of addresses) this.agents.get(node)?.del(address);
  }

  /**
   * No two nodes have an address; what a pod has is in its node's object, and its node's by the records, where nobody but Berth gives: what
   * others give is recorded a moment later, and what they take out of an object is written there again.
   */
  async witness({ othersGive = false } = {}): Promise<void> {
    const blocks = (await this.cluster.all("block")).flatMap(({ key, record }) =>
      addressesOf(key).map((address) => [address, record] as const),
    );
    const records = new Map(blocks);
    const given = givenIn(await this.objects());
    const filled = new Set(given.values());
    const users = new Map<string, string>(); // address -> node
    for (const [node, agent] of [...this.agents, ...this.#watched]) {
      for (const address of agent.used) {
        assert.equal(
          users.get(address),
          undefined,
          `${address} is used on ${users.get(address)} and ${node}`,
        );
        users.set(address, node);
        const own = records.get(address);
        if (own === undefined && othersGive) continue;
        assert.ok(own, `${address} is used on ${node} and nobody's by the records`);
        assert.deepEqual([own.node, own.releasedAt], [node, undefined], `${address} is used on ${node}`);
        // an object that was made again is empty for a moment
        if (filled.has(node) && !othersGive)
          assert.equal(
            given.get(address),
            node,
            `${address} is used on ${node} and was taken out of its object`,
          );
      }
    }
  }
}

/** Every address that a node is given by its object, and the node. */
function givenIn(objects: readonly CiliumObject[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (const { metadata, spec } of objects) {
    const { pool = {}, podCIDRs = [], pools } = spec.ipam ?? {};
    const listed = (pools?.allocated ?? []).flatMap(({ cidrs }) => cidrs);
    for (const address of [...Object.keys(pool), ...[...podCIDRs, ...listed].flatMap(addressesOf)]) {
      const other = given.get(address) ?? metadata.name;
      assert.equal(other, metadata.name, `${address} is ${other}'s and ${metadata.name}'s`);
      given.set(address, metadata.name);
    }
  }
  return given;
}

export function liesIn(address: string, cidr: string): boolean {
  const [one, network] = [parseAddress(address), parseCidr(cidr)];
  return one !== undefined && network !== undefined && contains(fullInterval(network), toNumber(one));
}

/** A connection whose process dies at its n-th write: before it, or after it before it hears of it. Then nothing is answered. */
export class MortalConnection implements Connection {
  readonly #inner: Connection;
  readonly #at: number;
  readonly #dies: "before" | "after";
  #writes = 0;

  constructor(inner: Connection, at: number, dies: "before" | "after") {
    this.#inner = inner;
    this.#at = at;
    this.#dies = dies;
  }

  get died(): boolean {
    return this.#writes >= this.#at;
  }

  async call(call: Call): Promise<Answer> {
    if (this.died) throw new Error("this process is dead");
    if (call.method === "GET") return await this.#inner.call(call);
    this.#writes++;
    if (!this.died) return await this.#inner.call(call);
    if (this.#dies === "after") await this.#inner.call(call);
    throw new Error("this process is dead");
  }

  async stream(call: Call, signal: AbortSignal): Promise<Stream | Answer> {
    return await this.#inner.stream(call, signal);
  }

  close(): void {}
}
