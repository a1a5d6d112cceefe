// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { altered } from "../../test/simulation/altered.ts";
import { poolRecord, reservationRecord } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld } from "../../test/support/world.ts";
import { capacities, check, distributor, Nodes, shared } from "./testing/block-nodes.ts";

describe("the distributor of blocks", () => {
  it("serves a range that two nodes share to its last address, one address at a time", async () => {
    const pool = shared(32);
    await using world = await openWorld({ pools: [pool] });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 20).set("node-b", 1);
    assert.deepEqual(await blocks.pass(), []);
    await world.settle();
    assert.deepEqual(await capacities(world), { "node-a": 20, "node-b": 1 });
    nodes.pods.set("node-b", 2);
    const [shortage] = await blocks.pass();
    assert.deepEqual(shortage, {
      pool: "web",
      family: "IPv4",
      recalls: [],
      short: [{ node: "node-b", missing: 1 }],
      asked: [],
    });
    nodes.pods.set("node-a", 19);
    const [asked] = await blocks.pass();
    assert.deepEqual(asked?.recalls, [{ node: "node-a", blocks: 1 }]);
    const one = (await world.all("block")).find(({ record }) => record.node === "node-a");
    nodes.returned.add(one?.uid ?? "");
    for (let pass = 0; pass < 3; pass++) {
      await blocks.pass();
      await world.settle();
      world.clock.advance(30_000);
    }
    assert.deepEqual(await blocks.pass(), []);
    assert.deepEqual(await capacities(world), { "node-a": 19, "node-b": 2 });
  });

  it("makes no block of which every address is reserved, and gives it when one is free again", async () => {
    const made: string[] = [];
    await using world = await openWorld({
      pools: [shared(32)],
      wrap: (store) =>
        altered(store, {
          create: (kind, record) => {
            if (kind === "block") made.push(keyOf(record));
            return store.create(kind, record);
          },
        }),
    });
    for (let n = 50; n < 70; n++)
      await world.realStore.create("reservation", reservationRecord(`10.0.0.${n}`, { pool: "web" }));
    await world.settle();
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 2);
    const short = [{ node: "node-a", missing: 1 }];
    for (let pass = 0; pass < 3; pass++) {
      assert.deepEqual(await blocks.pass(), [{ pool: "web", family: "IPv4", recalls: [], short, asked: [] }]);
      await world.settle();
    }
    assert.deepEqual(made, ["10.0.0.70/32"]);
    const one = await world.realStore.get("reservation", "10.0.0.60");
    if (one !== undefined) await world.realStore.remove("reservation", one);
    await world.settle();
    assert.deepEqual(await blocks.pass(), []);
    assert.deepEqual(made, ["10.0.0.70/32", "10.0.0.60/32"]);
  });

  it("takes no block from a node that is only silent, and all from one that is fenced", async () => {
    await using world = await openWorld({ pools: [shared(30)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 3).set("node-b", 0);
    await blocks.pass();
    await world.settle();
    const before = await capacities(world);
    nodes.pods.delete("node-a");
    world.clock.advance(3_600_000);
    await blocks.pass();
    await world.settle();
    assert.equal((await capacities(world))["node-a"], before["node-a"]);
    nodes.fenced.add("node-a");
    await blocks.pass();
    await world.settle();
    assert.equal((await capacities(world))["node-a"], undefined);
    assert.ok(
      (await world.all("block")).some(({ record }) => record.node === "node-a"),
      "they cool",
    );
    world.clock.advance(30_000);
    await blocks.pass();
    await world.settle();
    assert.ok(!(await world.all("block")).some(({ record }) => record.node === "node-a"));
  });

  it("counts what it has granted before the cache shows it", async () => {
    await using world = await openWorld({
      pools: [poolRecord("web", "10.16.0.0/16", { blockSize: { ipv4: 30 } })],
    });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 1);
    await blocks.pass();
    await blocks.pass();
    assert.equal((await world.all("block")).length, 3);
  });

  it("finishes what broke off, and passes over what cannot be settled", async () => {
    await using world = await openWorld({ pools: [shared(30)] });
    await world.realStore.create("block", {
      cidr: "10.0.0.52/30",
      pool: "web",
      node: "node-a",
      nodeUID: "u",
      holes: [],
    });
    await world.realStore.create("block", {
      cidr: "10.0.0.56/30",
      pool: "web",
      node: "node-b",
      nodeUID: "u",
      holes: [],
    });
    await world.settle();
    const nodes = new Nodes();
    nodes.evidence = async ({ record }) => {
      if (record.node === "node-a") throw new Error("no node");
      return undefined;
    };
    await distributor(world, nodes).pass();
    const states = (await world.all("block")).map(({ key, record }) => [key, record.granted === true]);
    assert.deepEqual(Object.fromEntries(states), { "10.0.0.52/30": false, "10.0.0.56/30": true });
  });

  it("takes the agent's word from the block, and counts what was given back as nobody's at once", async () => {
    await using world = await openWorld({ pools: [shared(32)], clock: new ManualClock() });
    const nodes = new Nodes();
    const blocks = distributor(world, nodes);
    nodes.pods.set("node-a", 21);
    await blocks.pass();
    nodes.pods.set("node-a", 20).set("node-b", 1);
    const [mine] = await world.all("block");
    assert.ok(mine);
    const status = { node: "node-b", used: 0, returnedAt: 5 };
    assert.ok((await world.realStore.reportBlock(mine, status)).kind === "replaced");
    await world.settle();
    await blocks.pass();
    const stranger = await world.realStore.get("block", mine.key);
    assert.equal(stranger?.record.releasedAt, undefined, "another node's word is none");
    assert.ok(stranger);
    await world.realStore.reportBlock(stranger, { ...status, node: "node-a" });
    await world.settle();
    await blocks.pass();
    assert.equal((await world.realStore.get("block", mine.key))?.record.releasedAt, world.clock.now());
    for (let pass = 0; pass < 3; pass++) {
      world.clock.advance(30_000);
      await world.settle();
      await blocks.pass();
    }
    assert.equal((await world.realStore.get("block", mine.key))?.record.node, "node-b");
  });

  it("gives a thousand nodes of a /12 their blocks, and each its own", async () => {
    const count = runsOf(1_000, 100);
    await using world = await openWorld({
      pools: [poolRecord("web", "10.16.0.0/12", { blockSize: { ipv4: 28 } })],
    });
    const nodes = new Nodes();
    for (let i = 0; i < count; i++) nodes.pods.set(`node-${i}`, i % 30);
    assert.deepEqual(await distributor(world, nodes).pass(), []);
    await world.settle();
    await check(world, 28);
    const found = await capacities(world);
    for (const [node, pods] of nodes.pods) {
      const spare = (found[node] ?? 0) - pods;
      assert.ok(spare >= 16 && spare < 48, `${node} with ${pods} pods has ${spare} to spare`);
    }
  });
});

function keyOf(record: object): string {
  return "cidr" in record ? String(record.cidr) : "";
}
