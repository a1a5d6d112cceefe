// SPDX-License-Identifier: Apache-2.0
// Nodes that serve pods out of blocks: the webhook with its controllers, and the agents of n1 and n2, as processes of their
// own with the accounts, rights and policies that the chart gives them.
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { NODES, PODS, POOLS } from "../../kube/api/resource.ts";
import { addressesOf, argsOf, errorOf, type Said } from "../cni/caller.ts";
import { buildPlugin, type Run } from "../cni/plugin.ts";
import { eventually, patient } from "../support/eventually.ts";
import { accountConfig, installAccounts, installPolicies } from "./accounts.ts";
import { AgentNode } from "./agent-node.ts";
import { AuditLog } from "./audit-log.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import { change, forceDelete, type Json, make, makePod } from "./replica-objects.ts";
import { type Replicas, startReplicas } from "./replicas.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

export const SHOP = "shop";
/** A pod that asks for nothing, on a node. */
export interface PlainPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: AgentNode;
}

/** A sandbox of a pod that has its addresses. */
export interface Box {
  readonly pod: PlainPod;
  readonly said: Said;
  readonly addresses: readonly string[];
}

/** The code of "try again later", with which a kubelet makes another sandbox. */
const LATER = /^11 /;
/** What a kubelet that waits for an address has patience for in these tests. */
const PATIENCE_MS = 90_000;

/** The last part of an address of IPv4, with its prefix or without. */
export function last(address: string): number {
  return Number(address.split("/")[0]?.split(".")[3]);
}

export class BlockCluster {
  readonly plane: StoppablePlane;
  /** From before webhook and agents were there. */
  readonly audit: AuditLog;
  readonly replicas: Replicas;
  readonly store: Store;
  readonly api: Connection;
  readonly nodes = new Map<string, AgentNode>(); // name -> node
  readonly #boxes = new Set<Box>();
  readonly #pods = new Set<PlainPod>();
  #count = 0;

  private constructor(plane: StoppablePlane, audit: AuditLog, replicas: Replicas) {
    this.plane = plane;
    this.audit = audit;
    this.replicas = replicas;
    this.api = plane.connect();
    this.store = openStore(this.api);
  }

  static async open(webhooks = 1, own?: StoppablePlane): Promise<BlockCluster> {
    await buildPlugin();
    const plane = own ?? (await openControlPlane());
    try {
      const audit = new AuditLog(plane);
      const api = plane.connect();
      await installDefinitions(api);
      await makeNamespaces(api, ["berth-system", "kube-system", SHOP]);
      await installAccounts(api);
      await installPolicies(api);
      const cluster = new BlockCluster(plane, audit, await startReplicas(plane, { count: webhooks }));
      for (const name of ["n1", "n2"]) await cluster.addNode(name);
      return cluster;
    } catch (error) {
      await plane.close();
      throw error;
    }
  }

  /** A node whose agent has loaded what it serves. */
  async addNode(name: string): Promise<AgentNode> {
    const node = await AgentNode.make(name, await accountConfig(this.plane, "berth-agent", name));
    this.nodes.set(name, node);
    await node.start();
    return node;
  }

  node(name: string): AgentNode {
    return this.nodes.get(name) ?? assert.fail(`there is no node ${name}`);
  }

  async makePool(name: string, spec: Json): Promise<void> {
    await make(this.api, POOLS, { name }, { spec });
  }

  /** A pod without an annotation, scheduled to the node. */
  async pod(node: AgentNode, namespace = SHOP, name = `plain-${++this.#count}`): Promise<PlainPod> {
    const made = await makePod(this.api, { namespace, name }, { node: node.name });
    const pod = { namespace, name, uid: made.metadata.uid, node };
    this.#pods.add(pod);
    return pod;
  }

  /** What a kubelet does: it tries again with another sandbox as long as it is told to try again. */
  async up(pod: PlainPod, over: Said = {}): Promise<Box> {
    for (const until = Date.now() + patient(PATIENCE_MS); ; ) {
      const said = { ...this.sandbox(pod), ...over };
      const run = await pod.node.runtime.call("ADD", said);
      if (run.rc === 0) return this.#keep({ pod, said, addresses: addressesOf(run) });
      await pod.node.runtime.del(said);
      const words = errorOf(run);
      if (!LATER.test(words) || Date.now() > until)
        throw new Error(`${pod.name} on ${pod.node.name}: ${words}\n${await this.told()}`);
    }
  }

  /** What every block says of itself, for a message. */
  async told(): Promise<string> {
    const lines = (await this.blocks()).map(({ key, record }) => {
      const { node, granted, recalledAt, releasedAt, status } = record;
      return `${key} ${JSON.stringify({ node, granted, recalledAt, releasedAt, status })}`;
    });
    const own = [...this.#boxes].map(
      ({ pod, addresses }) => `${pod.name} on ${pod.node.name}: ${addresses.join()}`,
    );
    return [...lines, ...own].join("\n");
  }

  /** One try. */
  async tryUp(pod: PlainPod, over: Said = {}): Promise<Box | string> {
    const said = { ...this.sandbox(pod), ...over };
    const run: Run = await pod.node.runtime.call("ADD", said);
    return run.rc === 0 ? this.#keep({ pod, said, addresses: addressesOf(run) }) : errorOf(run);
  }

  /** So many pods of the node, each with its address. */
  async upAll(node: AgentNode, count: number): Promise<readonly Box[]> {
    const pods = await Promise.all(Array.from({ length: count }, () => this.pod(node)));
    return await Promise.all(pods.map((pod) => this.up(pod)));
  }

  /** The pod is deleted and its sandbox ended. */
  async down(box: Box): Promise<void> {
    await this.forget(box.pod);
    await this.end(box);
  }

  /** The same of a pod that has a claim, whose address may be taken again at once. */
  async endFixed(box: Box): Promise<void> {
    await forceDelete(this.api, PODS, box.pod);
    await this.end(box);
  }

  async end({ pod, said }: Box): Promise<void> {
    // before the call: another pod may have its addresses before this process hears that the call has ended
    for (const box of this.#boxes) if (box.said === said) this.#boxes.delete(box);
    await pod.node.runtime.del(said);
  }

  async forget(pod: PlainPod): Promise<void> {
    if (!this.#pods.delete(pod)) return;
    await forceDelete(this.api, PODS, pod);
  }

  /** The machine lost its power: no sandbox of it is left, and nobody says so. */
  lose(node: AgentNode): void {
    for (const box of this.#boxes) if (box.pod.node === node) this.#boxes.delete(box);
  }

  /** The host boots: nothing of `/run` is left, and its journal is of another boot. */
  async reboot(node: AgentNode): Promise<void> {
    await node.stop("SIGKILL");
    this.lose(node);
    await rm(join(node.folder, "run"), { recursive: true });
    const journal = new DatabaseSync(join(node.folder, "data/agent.db"));
    for (const table of ["attachments", "blocks"]) journal.exec(`UPDATE ${table} SET boot_id = 'before'`);
    journal.close();
    await node.start();
  }

  async removeNode(name: string): Promise<void> {
    const node = this.nodes.get(name);
    this.nodes.delete(name);
    if (node === undefined) return;
    this.lose(node);
    await node.remove();
    for (const pod of this.#pods) if (pod.node === node) await this.forget(pod);
    await forceDelete(this.api, NODES, { name });
  }

  /** Every address that a sandbox has, of any node: no two have the same. */
  addresses(): readonly string[] {
    const all = [...this.#boxes].flatMap(({ addresses }) => addresses);
    assert.equal(new Set(all).size, all.length, `given twice: ${all.toSorted().join(" ")}`);
    return all;
  }

  /** The last parts of all addresses that sandboxes have now, in their order. */
  lasts(): readonly number[] {
    return this.addresses()
      .map(last)
      .toSorted((a, b) => a - b);
  }

  async blocks(): Promise<readonly Stored<"block">[]> {
    return await listed(this.store, "block");
  }

  /** How many blocks each node has that are granted and not given back. */
  async owned(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { record } of await this.blocks())
      if (record.granted === true && record.releasedAt === undefined)
        counts[record.node] = (counts[record.node] ?? 0) + 1;
    return counts;
  }

  async untilOwned(wanted: Readonly<Record<string, number>>): Promise<void> {
    let seen = {};
    const sorted = (counts: object) => JSON.stringify(Object.entries(counts).sort());
    await eventually(
      "the nodes have their blocks",
      async () => {
        seen = await this.owned();
        return sorted(seen) === sorted(wanted) || undefined;
      },
      PATIENCE_MS,
    ).catch(() => assert.deepEqual(seen, wanted));
  }

  /** No other node has a block. It may have them in parts, where another gave back some of one's addresses while others still cooled. */
  async untilAlone(name: string): Promise<void> {
    await eventually(
      `${name} alone has blocks`,
      async () => Object.keys(await this.owned()).join() === name || undefined,
      PATIENCE_MS,
    ).catch(async (error: unknown) => {
      const others = (await this.blocks()).filter(({ record }) => record.node !== name);
      throw new Error(`${String(error)}: ${JSON.stringify(others.map(({ record }) => record))}`);
    });
  }

  /** Ends all pods, and the pools: their blocks come back by themselves, and nothing is left. */
  async clear(): Promise<void> {
    for (const box of [...this.#boxes]) await this.end(box);
    for (const pod of [...this.#pods]) await this.forget(pod);
    for (const { record } of await listed(this.store, "pool")) {
      await change(this.api, POOLS, { name: record.name }, { spec: { disabled: true } });
      await eventually(
        "its blocks are back",
        async () => (await this.blocks()).every((block) => block.record.pool !== record.name) || undefined,
        PATIENCE_MS,
      );
      // refused as long as an address of it is held, which may be that of a pod that has just ended
      let refusal: unknown;
      await eventually(
        "the pool can be deleted",
        () =>
          forceDelete(this.api, POOLS, { name: record.name }).then(
            () => true,
            (error: unknown) => {
              refusal = error;
              return undefined;
            },
          ),
        PATIENCE_MS,
      ).catch((error: unknown) => {
        throw refusal ?? error;
      });
    }
    await eventually(
      "no pool is left",
      async () => (await listed(this.store, "pool")).length === 0 || undefined,
    );
  }

  async close(): Promise<void> {
    for (const node of this.nodes.values()) await node.remove();
    await this.replicas.close();
    await this.plane.close();
  }

  /** How a runtime calls for a new sandbox of the pod. */
  sandbox(pod: PlainPod): Said {
    return { cid: `box-${++this.#count}`, args: argsOf(pod) };
  }

  #keep(box: Box): Box {
    this.#boxes.add(box);
    this.addresses();
    return box;
  }
}
