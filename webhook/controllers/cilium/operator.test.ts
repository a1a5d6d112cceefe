// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import type { PoolRecord } from "../../../allocator/pool/pool.ts";
import { Client } from "../../../kube/api/client.ts";
import { NODES } from "../../../kube/api/resource.ts";
import type { CiliumObject } from "../../../test/cilium/agents.ts";
import { ObjectServer } from "../../../test/cilium/object-server.ts";
import { altered } from "../../../test/simulation/altered.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { poolRecord } from "../../../test/support/fixtures.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import { observedNode } from "../../cluster-state/projections.ts";
import { CILIUM_NODES, type CiliumMode, readCiliumNode } from "./cilium-node.ts";
import { CiliumOperator } from "./operator.ts";

function poolOf(name: string, cidr: string, spec: object = {}): PoolRecord {
  const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: 28 } } as const;
  return poolRecord(name, cidr, { nodeCIDRs, cooldown: "0s", ...spec });
}

/** One node, its CiliumNode as a person or its agent writes it, and an operator that sees both at once. */
class Scene {
  readonly world: World;
  readonly #server = new ObjectServer();
  readonly #operator: CiliumOperator;

  constructor(world: World, mode: CiliumMode) {
    this.world = world;
    const server = this.#server;
    const seen = <T>(plural: string, project: (item: never) => T) => {
      const all = function* () {
        for (const item of server.items(plural)) yield [item.metadata.name, project(item as never)] as const;
      };
      return { all, get: (name: string) => new Map(all()).get(name) };
    };
    this.#operator = new CiliumOperator({
      ...{ context: world.context, view: world.cache, mode },
      nodes: seen("nodes", observedNode),
      ciliumNodes: seen("ciliumnodes", readCiliumNode),
      client: this.#client(CILIUM_NODES),
      nodeClient: this.#client(NODES),
      mayWrite: () => true,
      isAbsentLong: () => true,
    });
  }

  #client(resource: typeof NODES): Client {
    return new Client(this.#server.connection(), resource);
  }

  async join(labels: Readonly<Record<string, string>> = {}, name = "n1"): Promise<void> {
    await this.#client(NODES).create({ name }, { metadata: { labels } });
  }

  async relabel(labels: Readonly<Record<string, string | null>>): Promise<void> {
    await this.#client(NODES).patch({ name: "n1" }, { type: "merge", body: { metadata: { labels } } });
  }

  async create(ipam: object): Promise<void> {
    await this.#client(CILIUM_NODES).create({ name: "n1" }, { spec: { ipam } });
  }

  async write(ipam: object): Promise<void> {
    await this.#client(CILIUM_NODES).patch({ name: "n1" }, { type: "merge", body: { spec: { ipam } } });
  }

  async request(addresses: number): Promise<void> {
    await this.write({ pools: { requested: [{ pool: "default", needed: { "ipv4-addrs": addresses } }] } });
  }

  async deleteObject(): Promise<void> {
    const path = "/apis/cilium.io/v2/ciliumnodes/n1";
    await this.#server.connection().call({ method: "DELETE", path });
  }

  async passes(n = 3): Promise<void> {
    for (let i = 0; i < n; i++) {
      await this.world.settle();
      await this.#operator.pass();
    }
    await this.world.settle();
  }

  get faults(): ReadonlyMap<string, string> {
    return this.#operator.faults;
  }

  get object(): CiliumObject | undefined {
    return this.#server.items("ciliumnodes").at(0) as CiliumObject | undefined;
  }

  get ipam(): NonNullable<CiliumObject["spec"]["ipam"]> {
    return this.object?.spec.ipam ?? assert.fail("there is no CiliumNode");
  }

  async blocks(): Promise<readonly string[]> {
    return (await this.world.all("block")).map(({ key }) => key);
  }
}

describe("Berth in the place of Cilium's operator", () => {
  it("tells a CiliumNode that is made again of what its node has of a pool that is for others now, in mode multi-pool", async () => {
    const pools = [
      poolOf("east", "10.1.0.0/24", { nodeSelector: { matchLabels: { zone: "east" } } }),
      poolOf("west", "10.2.0.0/24", { nodeSelector: { matchLabels: { zone: "west" } } }),
    ];
    await using world = await openWorld({ pools });
    const scene = new Scene(world, "multi-pool");
    await scene.join({ zone: "east" });
    await scene.passes();
    await scene.request(8);
    await scene.passes();
    const { pools: before } = scene.ipam;
    assert.equal(before?.allocated?.[0]?.cidrs.length, 1);
    await scene.relabel({ zone: "west" });
    await scene.deleteObject();
    await scene.passes();
    assert.deepEqual(scene.ipam.pools?.allocated, before?.allocated);
  });

  for (const mode of ["crd", "cluster-pool"] as const)
    it(`makes a CiliumNode again whose node has addresses, and no pool that is open to it, in mode ${mode}`, async () => {
      await using world = await openWorld({ pools: [poolOf("east", "10.1.0.0/24")] });
      const scene = new Scene(world, mode);
      await scene.join();
      await scene.passes();
      const { ipam } = scene;
      const [stored = assert.fail()] = await world.all("pool");
      const spec = { ...stored.record.spec, disabled: true };
      await world.realStore.replace("pool", stored, { ...stored.record, spec });
      await scene.deleteObject();
      await scene.passes();
      assert.deepEqual(scene.ipam.podCIDRs, ipam.podCIDRs);
    });

  for (const mode of ["crd", "cluster-pool"] as const)
    it(`gives a node CIDRs of one pool, whatever Cilium calls the others, in mode ${mode}`, async () => {
      const pools = [
        poolOf("east", "10.9.0.0/24", { nodeSelector: { matchLabels: { zone: "east" } } }),
        poolOf("any", "10.2.0.0/24", { cilium: { pool: "green" } }),
      ];
      await using world = await openWorld({ pools });
      const scene = new Scene(world, mode);
      await scene.join({ zone: "east" });
      await scene.passes();
      assert.match((await scene.blocks()).join(), /^10\.9\.0\.\d+\/28$/);
    });

  it("lists what it had in its order when a CiliumNode is made again, in mode cluster-pool", async () => {
    const podCIDRs = ["10.2.0.16/28", "10.9.0.16/28", "10.1.0.16/28"];
    const pools = [poolOf("one", "10.1.0.0/24"), poolOf("two", "10.2.0.0/24"), poolOf("nine", "10.9.0.0/24")];
    await using world = await openWorld({ pools, clock: new ManualClock() });
    const scene = new Scene(world, "cluster-pool");
    await scene.join();
    await scene.create({ podCIDRs });
    await scene.passes();
    await scene.deleteObject();
    await scene.passes();
    assert.deepEqual(scene.ipam.podCIDRs, podCIDRs);
  });

  it("lists what it gave within a second in its order when a CiliumNode is made again, in mode multi-pool", async () => {
    await using world = await openWorld({ pools: [poolOf("east", "10.1.0.0/24")], clock: new ManualClock() });
    const scene = new Scene(world, "multi-pool");
    await scene.join();
    await scene.passes();
    for (let cidrs = 1; cidrs <= 16; cidrs++) {
      await scene.request(14 * cidrs);
      await scene.passes();
    }
    const { pools: before } = scene.ipam;
    assert.equal(before?.allocated?.[0]?.cidrs.length, 16);
    await scene.deleteObject();
    await scene.passes();
    assert.deepEqual(scene.ipam.pools?.allocated, before?.allocated);
  });

  it("leaves a pool whose CIDRs are refused alone for a while, and says why", async () => {
    const clock = new ManualClock();
    let tries = 0;
    await using world = await openWorld({
      ...{ pools: [poolOf("east", "10.1.0.0/24")], clock },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind !== "block") return await store.create(kind, record);
            tries++;
            throw new BerthError("WRITE_REFUSED", "a policy refuses it");
          },
        }),
    });
    const scene = new Scene(world, "cluster-pool");
    await scene.join();
    await scene.passes(5);
    assert.deepEqual([tries, [...scene.faults]], [3, [["east", "a policy refuses it"]]]);
    clock.advance(5_000);
    await scene.passes(5);
    assert.equal(tries, 6);
  });

  it("keeps the last CIDR of a pool for no node that is refused it", async () => {
    await using world = await openWorld({
      ...{ pools: [poolOf("east", "10.1.0.0/28")], clock: new ManualClock() },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind === "block" && "node" in record && record.node === "n1")
              throw new BerthError("WRITE_REFUSED", "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    const scene = new Scene(world, "cluster-pool");
    await scene.join();
    await scene.passes();
    await scene.join({}, "n2");
    await scene.passes();
    const owners = (await world.all("block")).map(({ record }) => record.node);
    assert.deepEqual(owners, ["n2"]);
  });

  it("gives a node 256 CIDRs at most, also of several pools in one pass, and says so then", async () => {
    const pools = [poolOf("one", "10.1.0.0/16"), poolOf("two", "10.2.0.0/16", { cilium: { pool: "green" } })];
    await using world = await openWorld({ pools });
    const scene = new Scene(world, "multi-pool");
    await scene.join();
    await scene.passes();
    await scene.request(14 * 250);
    await scene.passes(20);
    assert.equal((await scene.blocks()).length, 250);
    const needed = { "ipv4-addrs": 14 * 400 };
    await scene.write({ pools: { requested: ["default", "green"].map((pool) => ({ pool, needed })) } });
    await scene.passes();
    assert.equal((await scene.blocks()).length, 256);
    assert.match(scene.object?.status?.ipam?.["operator-status"]?.error ?? "", /this node has 256 CIDRs/);
  });
});
