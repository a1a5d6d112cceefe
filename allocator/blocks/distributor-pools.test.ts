// SPDX-License-Identifier: Apache-2.0
// Blocks of pools that a replica does not know, or cannot read.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { altered } from "../../test/simulation/altered.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import type { Block } from "../model/block.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { BlockDistributor } from "./distributor.ts";
import { distributor, Nodes, shared } from "./testing/block-nodes.ts";

/** As a newer version may have written it. */
const NEWER: PoolRecord = { ...shared(30), spec: { ...shared(30).spec, cooldown: "a newer word" } };
const HALF = { cidr: "10.0.0.68/30", pool: "web", node: "node-b", nodeUID: "u", holes: [] };

async function write(world: World, pool: PoolRecord): Promise<void> {
  const seen = (await world.realStore.get("pool", pool.name)) ?? assert.fail();
  await world.realStore.replace("pool", seen, pool);
  await world.settle();
}

async function asked(world: World): Promise<number> {
  return (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined).length;
}

describe("blocks of a pool that cannot be read here", () => {
  it("are left as they are, granted or not, and gone on with once it can be read", async () => {
    await using world = await openWorld({ pools: [shared(30)] });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 4);
    await blocks.pass();
    await world.realStore.create("block", HALF);
    await write(world, NEWER);
    const before = await world.all("block");
    await blocks.pass();
    assert.deepEqual(await world.all("block"), before);
    await write(world, shared(30));
    await blocks.pass();
    assert.equal(await asked(world), 0);
    assert.equal((await world.realStore.get("block", HALF.cidr))?.record.granted, true);
  });

  it("are not taken away while they are made, and go when the node is fenced", async () => {
    await using world = await openWorld({ pools: [shared(30)], clock: new ManualClock() });
    const { realStore } = world;
    const store = new Proxy(realStore, {
      get(target, key) {
        if (key !== "create") return Reflect.get(target, key).bind(target);
        return async (...of: Parameters<typeof target.create>) => {
          const seen = (await realStore.get("pool", "web")) ?? assert.fail();
          await realStore.replace("pool", seen, NEWER);
          return await target.create(...of);
        };
      },
    });
    const nodes = new Nodes();
    const blocks = new BlockDistributor({ ...world.context, store, view: world.cache }, nodes);
    nodes.pods.set("node-a", 1);
    await blocks.pass();
    const made = await world.all("block");
    assert.ok(made.length > 0 && made.every(({ record }) => record.granted === undefined));
    await world.settle();
    nodes.fenced.add("node-a");
    await blocks.pass();
    assert.deepEqual(await world.all("block"), []);
  });
});

describe("blocks of a pool that is not known here yet", () => {
  it("are not asked for, and are once it is gone", async () => {
    await using world = await openWorld({ pools: [shared(30)] });
    const view = new Proxy(world.cache, {
      get(target, key) {
        if (key === "pool" || key === "poolRecord") return () => undefined;
        if (key === "pools") return () => [];
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    await world.realStore.create("block", { ...HALF, granted: true });
    await world.settle();
    const blocks = new BlockDistributor({ ...world.context, view }, new Nodes());
    await blocks.pass();
    assert.equal(await asked(world), 0);
    const seen = (await world.realStore.get("pool", "web")) ?? assert.fail();
    await world.realStore.remove("pool", seen);
    await blocks.pass();
    assert.equal(await asked(world), 1);
  });
});

describe("blocks of a pool that cannot be given now", () => {
  it("keep no other pool's nodes from theirs, and those of a store that is away are all that is tried", async () => {
    const pools = ["10.1.0.0/24", "10.2.0.0/24"].map((cidr, n) =>
      poolRecord(["a", "b"][n] ?? "", cidr, { blockSize: { ipv4: 28, ahead: 0 } }),
    );
    let code: "WRITE_REFUSED" | "STORE_UNAVAILABLE" = "WRITE_REFUSED";
    const tried: string[] = [];
    const clock = new ManualClock();
    await using world = await openWorld({
      ...{ pools, clock },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            const { pool = "" } = { pool: undefined, ...record };
            if (kind === "block") tried.push(pool);
            if (kind === "block" && pool === "a") throw new BerthError(code, "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    const nodes = new Nodes();
    nodes.pods.set("node-a", 1);
    const said: unknown[] = [];
    const log = { ...world.context.log, error: (...line: unknown[]) => void said.push(line) };
    const blocks = new BlockDistributor({ ...world.context, log, view: world.cache }, nodes);
    await blocks.pass();
    assert.deepEqual(
      (await world.all("block")).map(({ record }) => record.pool),
      ["b"],
    );
    assert.deepEqual(said, [
      ["blocks of a pool cannot be given", { pool: "a", error: "a policy refuses it" }],
    ]);
    assert.deepEqual([...blocks.faults], [["a", "a policy refuses it"]], "for an event of the pool");
    // for some seconds it is not tried again, however many pods come and go
    tried.length = 0;
    await blocks.pass();
    assert.deepEqual([tried, [...blocks.faults]], [[], [["a", "a policy refuses it"]]]);
    clock.advance(5_000);
    await blocks.pass();
    assert.deepEqual(new Set(tried), new Set(["a"]));
    nodes.pods.clear();
    clock.advance(10_000);
    await blocks.pass();
    assert.deepEqual([...blocks.faults], []);
    nodes.pods.set("node-a", 1);
    code = "STORE_UNAVAILABLE";
    nodes.pods.set("node-b", 1);
    tried.length = 0;
    await assert.rejects(blocks.pass(), { code });
    assert.deepEqual(new Set(tried), new Set(["a"]));
  });

  /** Passes over a pool of so many blocks of 16 addresses, of which some nodes are refused theirs. */
  async function refusing(cidr: string, refused: ReadonlySet<string>) {
    const clock = new ManualClock();
    let tries = 0;
    const world = await openWorld({
      ...{ pools: [poolRecord("web", cidr, { blockSize: { ipv4: 28, ahead: 0 } })], clock },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind !== "block" || !("node" in record) || !refused.has(record.node))
              return await store.create(kind, record);
            tries++;
            throw new BerthError("WRITE_REFUSED", `a policy refuses it for ${record.node}`);
          },
        }),
    });
    const nodes = new Nodes();
    const blocks = new BlockDistributor({ ...world.context, view: world.cache }, nodes);
    /** Owners of blocks, and nodes that are short. */
    const owners = async () => {
      tries = 0;
      const shortages = await blocks.pass();
      await world.settle();
      const all = (await world.all("block")).map(({ record }) => record.node);
      return [
        all.sort().join(" "),
        shortages.flatMap(({ short }) => short.map(({ node }) => node)).join(" "),
      ];
    };
    const close = () => world[Symbol.asyncDispose]();
    return { clock, nodes, blocks, owners, tries: () => tries, [Symbol.asyncDispose]: close };
  }

  it("for one node are given to another that asks since, at once, and nodes are asked for theirs meanwhile", async () => {
    await using pool = await refusing("10.1.0.0/27", new Set(["refused"]));
    const { nodes, owners, blocks } = pool;
    nodes.pods.set("refused", 1);
    assert.deepEqual(await owners(), ["", ""]);
    nodes.pods.set("a", 1);
    assert.deepEqual(await owners(), ["a", ""]);
    nodes.pods.set("a", 17);
    nodes.pods.set("b", 1);
    assert.deepEqual(await owners(), ["a a", "refused b"], "others are asked for them");
    assert.deepEqual([...blocks.faults], [["web", "a policy refuses it for refused"]]);
  });

  it("say why of a node that asks, and no longer of one that needs none any more", async () => {
    await using pool = await refusing("10.1.0.0/26", new Set(["a", "b"]));
    const { nodes, owners, blocks, clock } = pool;
    const said = async (pods: number) => {
      nodes.pods.set("a", pods);
      await owners();
      clock.advance(50_000);
      return blocks.faults.get("web");
    };
    nodes.pods.set("a", 1).set("b", 1);
    assert.equal(await said(1), "a policy refuses it for a");
    assert.equal(await said(1), "a policy refuses it for a");
    assert.equal(await said(0), "a policy refuses it for b");
    assert.equal(await said(1), "a policy refuses it for b");
  });

  it("for a node are tried at once where it goes and comes again, and not where it only needs none for a while", async () => {
    await using pool = await refusing("10.1.0.0/27", new Set(["refused"]));
    const { nodes, owners, tries } = pool;
    const triedWith = async (pods: number | undefined) => {
      if (pods === undefined) nodes.pods.delete("refused");
      else nodes.pods.set("refused", pods);
      await owners();
      return tries();
    };
    assert.deepEqual([await triedWith(1), await triedWith(0), await triedWith(1)], [2, 0, 0]);
    assert.deepEqual([await triedWith(undefined), await triedWith(1)], [0, 2]);
  });

  it("for the nodes that a plan begins with are given to one that it has none for", async () => {
    const refused = new Set(["r1", "r2", "r3"]);
    await using pool = await refusing("10.1.0.0/28", refused);
    const { nodes, owners, clock, tries } = pool;
    for (const node of refused) nodes.pods.set(node, 1);
    await owners();
    for (let n = 0; n < 3; n++) {
      clock.advance(50_000);
      await owners();
    }
    assert.deepEqual(await owners(), ["", "r2 r3"], "one is free");
    assert.equal(tries(), 0);
    nodes.pods.set("a", 1);
    assert.deepEqual(await owners(), ["a", "r1 r2 r3"]);
  });

  it("for a node that was refused before are given to it once it is not, be the others that come first refused still", async () => {
    const refused = new Set(["r1", "r2", "r3"]);
    await using pool = await refusing("10.1.0.0/28", refused);
    const { nodes, owners, clock } = pool;
    for (const node of refused) nodes.pods.set(node, 1);
    for (let n = 0; n < 3; n++) {
      await owners();
      clock.advance(50_000);
    }
    refused.delete("r2");
    assert.deepEqual(await owners(), ["r2", "r1 r3"]);
  });
});

describe("blocks that a node cannot be asked for", () => {
  for (const used of [0, 1])
    it(`keep none of the others from being asked for theirs, where ${used} addresses of each are used`, async () => {
      await using world = await openWorld({
        ...{ pools: [poolRecord("web", "10.1.0.0/27", { blockSize: { ipv4: 28, ahead: 0 } })] },
        wrap: (store) =>
          altered(store, {
            replace: async (kind, seen, record) => {
              const { recalledAt, recalledAddresses, node } = record as Block;
              if (node === "a" && (recalledAt ?? recalledAddresses) !== undefined)
                throw new BerthError("WRITE_REFUSED", "a policy refuses it");
              return await store.replace(kind, seen, record);
            },
          }),
      });
      const nodes = new Nodes();
      for (const node of ["a", "b"]) nodes.pods.set(node, 1);
      const blocks = new BlockDistributor({ ...world.context, view: world.cache }, nodes);
      await blocks.pass();
      for (const seen of await world.all("block"))
        await world.realStore.reportBlock(seen, { node: seen.record.node, used });
      await world.settle();
      for (const node of ["a", "b"]) nodes.pods.set(node, used);
      nodes.pods.set("c", 17);
      const short = (await blocks.pass()).flatMap((one) => one.short.map(({ node }) => node));
      const owners = (await world.all("block")).flatMap(({ record }) =>
        (record.recalledAt ?? record.recalledAddresses) === undefined ? [] : [record.node],
      );
      assert.deepEqual([short, owners], [["c"], ["b"]]);
      assert.deepEqual([...blocks.faults], [["web", "a policy refuses it"]]);
    });
});
