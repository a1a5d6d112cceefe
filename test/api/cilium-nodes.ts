// SPDX-License-Identifier: Apache-2.0
// What the tests of Cilium's nodes do with them: they join, their pods come and go, and an operator dies meanwhile.
import assert from "node:assert/strict";
import type { Connection } from "../../kube/api/connection.ts";
import type { CiliumMode } from "../../webhook/controllers/cilium/cilium-node.ts";
import { type CiliumAgent, CrdAgent, MultiPoolAgent } from "../cilium/agents.ts";
import { ClusterPoolAgent, GrowingClusterPoolAgent } from "../cilium/cluster-pool-agents.ts";
import { eventually } from "../support/eventually.ts";
import { type CiliumCluster, MortalConnection } from "./cilium-cluster.ts";

/** An agent, and the mode that Berth is in beside it. */
export interface Kind {
  readonly mode: CiliumMode;
  readonly Agent: new (connection: Connection, node: string) => CiliumAgent;
}

export const KINDS = {
  crd: { mode: "crd", Agent: CrdAgent },
  "cluster-pool": { mode: "cluster-pool", Agent: ClusterPoolAgent },
  "cluster-pool-v2beta": { mode: "cluster-pool", Agent: GrowingClusterPoolAgent },
  "multi-pool": { mode: "multi-pool", Agent: MultiPoolAgent },
} as const satisfies Readonly<Record<string, Kind>>;

export const ZONES = [
  ["n1", "a"],
  ["n2", "a"],
  ["n3", "b"],
] as const;

export class CiliumNodes {
  readonly #world: CiliumCluster;
  /** An operator's. */
  readonly #connection: Connection;

  constructor(world: CiliumCluster, connection: Connection) {
    this.#world = world;
    this.#connection = connection;
  }

  /** A pool for each zone, far from each other. */
  async addPools(): Promise<void> {
    await this.#world.addPool("a", ["10.10.0.0/25", "20.216.255.0/25"], {
      nodeSelector: { matchLabels: { zone: "a" } },
    });
    await this.#world.addPool("b", ["192.168.7.0/24"], { nodeSelector: { matchLabels: { zone: "b" } } });
  }

  /** Its agent begins, with nothing in use. */
  async join(name: string, zone: string, { Agent }: Kind): Promise<void> {
    await this.#world.addNode(name, zone);
    this.#world.agents.set(name, new Agent(this.#world.cluster.connection, name));
  }

  async joinAll(kind: Kind): Promise<void> {
    for (const [name, zone] of ZONES) await this.join(name, zone, kind);
  }

  /** One that dies at that write, while pods come to a node and go. */
  async dieAt(mode: CiliumMode, at: number, dies: "before" | "after"): Promise<void> {
    const mortal = new MortalConnection(this.#connection, at, dies);
    const operator = this.#world.operate(mode, mortal);
    const [name] = ZONES[at % ZONES.length] ?? ZONES[0];
    const isDead = async () => {
      await this.#comeAndGo(name, () => mortal.died);
      return mortal.died || undefined;
    };
    await eventually(`it dies ${dies} its write ${at}`, isDead);
    await operator.close();
    await this.#world.witness();
  }

  /** Six pods at a time come to the node, and go again all at once, for long enough that it gives back what it had, until that is enough. */
  async #comeAndGo(name: string, isEnough: () => boolean): Promise<void> {
    const agent = this.#world.agents.get(name) ?? assert.fail(name);
    for (let n = 0; n < 6 && !isEnough(); n++) {
      await this.#world.step();
      const hasMore = Array.from({ length: 6 }, () => agent.add()).every((one) => one !== undefined);
      if (!hasMore) break;
    }
    for (const address of [...agent.used]) agent.del(address);
    for (let idle = 0; idle < 8 && !isEnough(); idle++) {
      this.#world.cluster.clock.skip(20_000);
      await this.#world.step();
    }
  }

  /**
   * One that dies at that write of a node's whole life: it joins, has its pods, and is deleted. The next one finishes what was begun. Gives
   * whether there was such a write.
   */
  async dieInLife(kind: Kind, at: number, dies: "before" | "after"): Promise<boolean> {
    const world = this.#world;
    const name = `${dies}-${at}`;
    const mortal = new MortalConnection(this.#connection, at, dies);
    const first = world.operate(kind.mode, mortal);
    await this.join(name, "a", kind);
    const agent = world.agents.get(name) ?? assert.fail(name);
    const isServed = async () => mortal.died || agent.add() !== undefined;
    await world.until(`${name} has an address, or nobody gives any`, isServed);
    const isAlive = !mortal.died;
    if (isAlive) {
      await world.deleteNode(name);
      await world.until("what it had is free, or nobody takes it", async () => {
        return mortal.died || (await this.#blocksOf(name)) === 0;
      });
    }
    await first.close();
    const second = world.operate(kind.mode, this.#connection);
    if (!isAlive) await world.grow(name, 5);
    else await world.until("what it had is free", async () => (await this.#blocksOf(name)) === 0);
    await second.close();
    return mortal.died;
  }

  /** Those that cool too. */
  async #blocksOf(node: string): Promise<number> {
    return (await this.#world.cluster.all("block")).filter(({ record }) => record.node === node).length;
  }
}
