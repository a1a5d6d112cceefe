// SPDX-License-Identifier: Apache-2.0
// What keeps blocks of pools apart that no review could keep apart, and what a node gets at most.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { ownedIn } from "../cache/block-index.ts";
import { fromNumber } from "../ip/address.ts";
import type { Pool, PoolRecord } from "../pool/pool.ts";
import type { BlockFacts } from "./block-facts.ts";
import { BlockDistributor } from "./distributor.ts";

type Over = Partial<PoolRecord["spec"]>;

function pool(name: string, from: number, to: number, over: Over): PoolRecord {
  const record = poolRecord(name, "10.0.0.0/24", over);
  const ranges = [{ cidr: "10.0.0.0/24", from: `10.0.0.${from}`, to: `10.0.0.${to}` }];
  return { ...record, spec: { ...record.spec, ranges } };
}

/** Pods by pool and node, where a pool's nodes are those that it names. */
class Facts implements BlockFacts {
  areProven?: boolean;
  readonly pods = new Map<string, Record<string, number>>(); // pool -> node -> pods

  nodesFor({ name }: Pool) {
    const nodes = Object.entries(this.pods.get(name) ?? {});
    return nodes.map(([node, pods]) => ({ node, nodeUID: `uid-of-${node}`, pods }));
  }

  selects({ name }: Pool, node: string): boolean {
    return this.pods.get(name)?.[node] !== undefined;
  }

  async evidence(): Promise<undefined> {
    return undefined;
  }
}

async function owned(world: World): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>(); // address -> node
  for (const { record } of await world.all("block")) {
    if (record.granted !== true) continue;
    for (const { first, last } of ownedIn(record).intervals) {
      for (let n = first; n <= last; n++) {
        const address = fromNumber(n, "IPv4");
        assert.equal(owners.get(address), undefined, `${address} is in two blocks`);
        owners.set(address, record.node);
      }
    }
  }
  return owners;
}

describe("blocks of pools over one range", () => {
  for (const [a, b] of [
    [32, 31],
    [31, 32],
    [30, 30],
    [29, 31],
  ] as const)
    it(`have no address in common: /${a} and /${b}`, async () => {
      const pools = [
        pool("a", 8, 23, { blockSize: { ipv4: a, ahead: 0 } }),
        pool("b", 8, 23, { blockSize: { ipv4: b, ahead: 0 } }),
      ];
      await using world = await openWorld({ pools });
      const facts = new Facts();
      facts.pods.set("a", { "node-a": 7 }).set("b", { "node-b": 7 });
      const blocks = new BlockDistributor({ ...world.context, view: world.cache }, facts);
      for (let pass = 0; pass < 3; pass++) {
        await blocks.pass();
        await owned(world);
        await world.settle();
      }
      assert.deepEqual(new Set((await owned(world)).values()), new Set(["node-a", "node-b"]));
    });

  it("are to be had from whoever has an idle one, also where another pool has the name of one of them", async () => {
    const of = { blockSize: { ipv4: 29, ahead: 0 } };
    const pools = [pool("pa", 16, 20, of), pool("pb", 21, 38, of)];
    await using world = await openWorld({ pools });
    const facts = new Facts();
    facts.pods.set("pa", { "node-a": 1 }).set("pb", { "node-a": 1, "node-b": 0 });
    const blocks = new BlockDistributor({ ...world.context, view: world.cache }, facts);
    const pass = async () => {
      const short = await blocks.pass();
      await world.settle();
      return short;
    };
    await pass();
    facts.pods.set("pb", { "node-a": 0, "node-b": 10 });
    await pass();
    const [shortage] = await pass();
    assert.equal(shortage?.pool, "pb");
    const asked = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
    assert.deepEqual(
      asked.map(({ record: { pool, node } }) => [pool, node]),
      [["pb", "node-a"]],
    );
  });
});

describe("a pool that is made smaller", () => {
  it("while a pass grants gives nothing beyond its ranges", async () => {
    await using world = await openWorld({ pools: [pool("a", 1, 63, { blockSize: { ipv4: 30 } })] });
    const facts = new Facts();
    facts.pods.set("a", { "node-a": 40 });
    const { realStore } = world;
    let made = 0;
    const store = new Proxy(realStore, {
      get(target, key) {
        if (key !== "create") return Reflect.get(target, key).bind(target);
        return async (...of: Parameters<typeof target.create>) => {
          if (++made === 3) {
            const seen = (await realStore.get("pool", "a")) ?? assert.fail();
            const smaller = pool("a", 1, 45, { blockSize: { ipv4: 30 } });
            await realStore.replace("pool", seen, smaller);
          }
          return await target.create(...of);
        };
      },
    });
    const blocks = new BlockDistributor({ ...world.context, store, view: world.cache }, facts);
    await blocks.pass();
    const all = [...(await owned(world)).keys()].map((address) => Number(address.split(".")[3]));
    assert.ok(made > 3 && Math.max(...all) === 45, `${made}: ${all.join()}`);
  });

  it("asks for what its nodes have beyond its ranges", async () => {
    await using world = await openWorld({ pools: [pool("a", 1, 31, { blockSize: { ipv4: 30 } })] });
    const facts = new Facts();
    facts.pods.set("a", { "node-a": 30 });
    const blocks = new BlockDistributor({ ...world.context, view: world.cache }, facts);
    await blocks.pass();
    await world.settle();
    const seen = (await world.realStore.get("pool", "a")) ?? assert.fail();
    await world.realStore.replace("pool", seen, pool("a", 1, 13, { blockSize: { ipv4: 30 } }));
    await world.settle();
    await blocks.pass();
    const asked = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
    assert.deepEqual(asked.map(({ key }) => key).sort(), [
      "10.0.0.12/30",
      "10.0.0.16/30",
      "10.0.0.20/30",
      "10.0.0.24/30",
      "10.0.0.28/30",
    ]);
  });
});

describe("a node", () => {
  it("that a pool does not select any more is asked for all that it has of it", async () => {
    await using world = await openWorld({ pools: [pool("a", 50, 55, { blockSize: { ipv4: 32 } })] });
    const facts = new Facts();
    facts.pods.set("a", { "node-a": 0, "node-b": 4 });
    const blocks = new BlockDistributor({ ...world.context, view: world.cache }, facts);
    await blocks.pass();
    await world.settle();
    facts.pods.set("a", { "node-b": 6 });
    await blocks.pass();
    const asked = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
    assert.deepEqual(
      asked.map(({ record }) => record.node),
      ["node-a"],
    );
  });

  it("whose agent does not say that it has its blocks gets a few, others lose none for it, and none after a while", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ pools: [pool("a", 50, 70, { blockSize: { ipv4: 32 } })], clock });
    const facts = new Facts();
    facts.areProven = true;
    facts.pods.set("a", { dead: 0, living: 5 });
    const blocks = new BlockDistributor({ ...world.context, view: world.cache }, facts);
    const passes = async (prove: string) => {
      for (let n = 0; n < 6; n++) {
        await blocks.pass();
        await world.settle();
        const all = await world.all("block");
        for (const seen of all.filter(({ record }) => record.node === prove && record.status === undefined))
          await world.realStore.reportBlock(seen, { node: prove, used: 1 });
        await world.settle();
      }
      const counts = { dead: 0, living: 0 };
      for (const { record } of await world.all("block")) counts[record.node as "dead" | "living"]++;
      return counts;
    };
    assert.deepEqual(await passes("living"), { dead: 2, living: 7 });
    facts.pods.set("a", { dead: 60, living: 5 });
    assert.deepEqual(await passes("living"), { dead: 4, living: 7 });
    clock.advance(30_000);
    facts.pods.set("a", { dead: 60, living: 20 });
    assert.deepEqual(await passes("living"), { dead: 4, living: 17 });
    const recalled = (await world.all("block")).filter(({ record }) => record.recalledAt !== undefined);
    assert.deepEqual(recalled, [], "nobody is asked for what a dead node would get");
  });
});
