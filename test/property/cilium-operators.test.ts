// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import { NODES } from "../../kube/api/resource.ts";
import { observedNode } from "../../webhook/cluster-state/projections.ts";
import { CILIUM_NODES, readCiliumNode } from "../../webhook/controllers/cilium/cilium-node.ts";
import { CiliumOperator } from "../../webhook/controllers/cilium/operator.ts";
import {
  addressesOf,
  type CiliumAgent,
  type CiliumObject,
  CrdAgent,
  MultiPoolAgent,
} from "../cilium/agents.ts";
import { GrowingClusterPoolAgent } from "../cilium/cluster-pool-agents.ts";
import { ObjectServer } from "../cilium/object-server.ts";
import { HastyClock } from "../support/clock.ts";
import { poolRecord } from "../support/fixtures.ts";
import { SeededRandom } from "../support/random.ts";
import { runsOf } from "../support/runs.ts";
import { openWorld, type World } from "../support/world.ts";

const NAMES = ["n1", "n2", "n3"];
const OPERATORS = 3;
const AGENTS = {
  crd: CrdAgent,
  "cluster-pool": GrowingClusterPoolAgent,
  "multi-pool": MultiPoolAgent,
} as const;
const MODES = ["crd", "cluster-pool", "multi-pool"] as const;

/** A life of three nodes with three operators, each of which stops between any two of its calls for as long as it likes. */
class Life {
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #mode: (typeof MODES)[number];
  readonly #server = new ObjectServer();
  readonly #agents = new Map<string, CiliumAgent>();
  readonly #operators: { operator: CiliumOperator; running: Promise<unknown> | undefined }[] = [];
  /** A call of an operator that has not gone on yet. */
  readonly #held: (() => void)[] = [];
  readonly #frozen: (() => void)[] = [];
  /** What each of them has heard of the records. */
  readonly #seen: Map<string, Stored<"block">>[] = [];
  #isFree = false;

  constructor(world: World, random: SeededRandom, mode: (typeof MODES)[number]) {
    this.#world = world;
    this.#random = random;
    this.#mode = mode;
    for (let n = 0; n < OPERATORS; n++)
      this.#operators.push({ operator: this.#operator(n), running: undefined });
  }

  readonly #pause = async (): Promise<void> => {
    const dice = this.#random.fraction();
    if (this.#isFree || dice < 0.6) return;
    // a process that stands still for minutes, and goes on as if nothing had happened
    const held = dice < 0.95 ? this.#held : this.#frozen;
    await new Promise<void>((resolve) => held.push(resolve));
  };

  #operator(n: number): CiliumOperator {
    const connection = this.#server.connection(this.#pause);
    const context = this.#world.another(n, pausing(this.#world.realStore, this.#pause));
    const reflected = <T>(plural: string, project: (item: CiliumObject) => T) => ({
      all: () =>
        this.#server
          .items(plural)
          .map((item) => [item.metadata.name, project(item as never)] as const) as never,
      get: (name: string) => {
        const item = this.#server.items(plural).find(({ metadata }) => metadata.name === name);
        return item === undefined ? undefined : project(item as never);
      },
    });
    return new CiliumOperator({
      context,
      view: this.#lagging(n),
      mode: this.#mode,
      nodes: reflected("nodes", observedNode),
      ciliumNodes: reflected("ciliumnodes", readCiliumNode),
      client: new Client(connection, CILIUM_NODES),
      nodeClient: new Client(connection, NODES),
      mayWrite: () => true,
      isAbsentLong: () => true,
      quietMs: 10_000,
    });
  }

  /** What a watch has told, which may be long ago. */
  #lagging(n: number): RecordCache {
    const { cache } = this.#world;
    return new Proxy(cache, {
      get: (target, name) => {
        const seen = this.#seen[n];
        if (seen !== undefined && name === "blocks") return () => seen.values();
        if (seen !== undefined && name === "block") return (cidr: string) => seen.get(cidr);
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  #look(n: number): void {
    this.#seen[n] = new Map([...this.#world.cache.blocks()].map((stored) => [stored.key, stored]));
  }

  async begin(): Promise<void> {
    for (const name of NAMES) await this.#join(name);
  }

  async #join(name: string): Promise<void> {
    const connection = this.#server.connection();
    await new Client(connection, NODES).create({ name }, {});
    this.#agents.set(name, new AGENTS[this.#mode](connection, name));
  }

  async #leave(name: string): Promise<void> {
    this.#agents.delete(name);
    await this.#remove(name);
    const connection = this.#server.connection();
    await connection.call({ method: "DELETE", path: `/api/v1/nodes/${name}` });
  }

  async #remove(name: string): Promise<void> {
    await this.#server
      .connection()
      .call({ method: "DELETE", path: `/apis/cilium.io/v2/ciliumnodes/${name}` });
  }

  async act(): Promise<void> {
    const random = this.#random;
    const name = random.pick(NAMES);
    const agent = this.#agents.get(name);
    const dice = random.below(100);
    if (dice < 40) await this.#operate();
    else if (dice < 55) await agent?.sync();
    else if (dice < 70) await agent?.report();
    else if (dice < 98) this.#pods(agent, dice < 84);
    else if (dice === 98) await (agent === undefined ? this.#join(name) : this.#leave(name));
    else await this.#remove(name);
    if (random.below(4) === 0) this.#look(random.below(OPERATORS));
    if (random.below(25) === 0) this.#frozen.splice(random.below(this.#frozen.length), 1)[0]?.();
    this.#world.clock.advance(random.below(6_000));
    await turn();
    await this.judge();
  }

  #pods(agent: CiliumAgent | undefined, come: boolean): void {
    const used = [...(agent?.used ?? [])];
    if (come) for (let n = this.#random.below(12); n > 0; n--) agent?.add();
    else for (const address of used.filter(() => this.#random.below(3) > 0)) agent?.del(address);
  }

  /** One of them begins, or goes on. */
  async #operate(): Promise<void> {
    const one = this.#random.pick(this.#operators);
    if (one.running === undefined) {
      one.running = one.operator.pass().finally(() => {
        one.running = undefined;
      });
      one.running.catch(() => {});
    } else this.#held.splice(this.#random.below(this.#held.length), 1)[0]?.();
    await turn();
  }

  /** Nobody is held any more. */
  async finish(): Promise<void> {
    this.#isFree = true;
    for (const go of [...this.#held.splice(0), ...this.#frozen.splice(0)]) go();
    for (const agent of this.#agents.values()) for (const address of [...agent.used]) agent.del(address);
    await Promise.all(this.#operators.map(({ running }) => running));
    for (let n = 0; n < 60; n++) {
      for (const [i, { operator }] of this.#operators.entries()) {
        this.#look(i);
        await operator.pass();
      }
      for (const agent of this.#agents.values()) {
        await agent.sync();
        await agent.report();
      }
      this.#world.clock.advance(5_000);
      await this.#world.settle();
      await this.judge();
    }
    for (const [name, agent] of this.#agents) assert.ok(agent.add(), `a pod of ${name} gets no address`);
  }

  async judge(): Promise<void> {
    const given = new Map<string, string>();
    for (const { metadata, spec } of this.#server.items(
      "ciliumnodes",
    ) as unknown as readonly CiliumObject[]) {
      const { pool = {}, podCIDRs = [], pools } = spec.ipam ?? {};
      const cidrs = [...podCIDRs, ...(pools?.allocated ?? []).flatMap((entry) => entry.cidrs)];
      for (const address of [...Object.keys(pool), ...cidrs.flatMap(addressesOf)]) {
        assert.equal(given.get(address) ?? metadata.name, metadata.name, `${address} is two nodes'`);
        given.set(address, metadata.name);
      }
    }
    const users = new Map<string, string>();
    const records = new Map((await this.#world.all("block")).map(({ key, record }) => [key, record]));
    for (const { node, used } of this.#agents.values()) {
      for (const address of used) {
        assert.equal(users.get(address), undefined, `${address} is used on two nodes`);
        users.set(address, node);
        const record = [...records.values()].find(({ cidr }) => addressesOf(cidr).includes(address));
        assert.deepEqual(
          [record?.node, record?.releasedAt],
          [node, undefined],
          `${address} is used on ${node}`,
        );
      }
    }
  }
}

/** A store whose callers stop before and after each call. */
function pausing(store: Store, pause: () => Promise<void>): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name === "list") return value.bind(target);
      return async (...of: unknown[]) => {
        await pause();
        const result: unknown = await Reflect.apply(value, target, of);
        await pause();
        return result;
      };
    },
  });
}

describe("Cilium's nodes under three operators, in any order of their steps", () => {
  for (const mode of MODES)
    it(`never have an address twice, nor lose one that is used, in mode ${mode}`, async () => {
      for (let seed = 1; seed <= runsOf(60, 4); seed++) {
        const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: 29 } } as const;
        const pools = [poolRecord("all", ["10.0.0.0/26", "10.9.0.0/29"], { nodeCIDRs, cooldown: "5s" })];
        await using world = await openWorld({ pools, clock: new HastyClock(), seed });
        const life = new Life(world, new SeededRandom(seed), mode);
        try {
          await life.begin();
          for (let n = 0; n < 300; n++) await life.act();
          await life.finish();
        } catch (error) {
          throw new Error(`seed ${seed}`, { cause: error });
        }
      }
    });
});
