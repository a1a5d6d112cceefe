// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { openWorld } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { distributor, FOUR, Nodes, nodesPool, pass, SIX } from "./testing/cidr-nodes.ts";

describe("a pool whose CIDRs are refused", () => {
  it("rests before it is tried again, says why, and keeps no other waiting", async () => {
    const clock = new ManualClock();
    let isRefused = true;
    const tried: string[] = [];
    await using world = await openWorld({
      ...{ pools: [FOUR, SIX], clock },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            const { pool = "" } = { pool: undefined, ...record };
            if (kind === "block") tried.push(pool);
            if (kind === "block" && pool === "four" && isRefused)
              throw new BerthError("WRITE_REFUSED", "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes, { families: ["IPv4", "IPv6"], store: world.store });
    const seen = async () => {
      tried.length = 0;
      const { waiting } = await pass(world, nodes, by);
      return [waiting, tried.filter((name) => name === "four").length, [...by.faults]];
    };
    const why = [["four", "a policy refuses it"]];
    assert.deepEqual(await seen(), [1, 3, why]);
    const given = (await world.all("block")).map(({ record }) => record.pool);
    assert.deepEqual(given, [SIX.name], "of the other pool");
    assert.deepEqual(await seen(), [1, 0, why]);
    clock.advance(5_000);
    assert.deepEqual(await seen(), [1, 3, why]);
    clock.advance(5_000);
    assert.deepEqual(await seen(), [1, 0, why], "twice as long");
    clock.advance(5_000);
    isRefused = false;
    assert.deepEqual(await seen(), [0, 1, []]);
  });

  it("for one node alone has CIDRs for all others at once", async () => {
    await using world = await openWorld({
      ...{ pools: [nodesPool("four", "10.0.0.0/15", 24)], clock: new ManualClock() },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind === "block" && "node" in record && record.node === "a")
              throw new BerthError("WRITE_REFUSED", "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    const nodes = new Nodes();
    for (const name of ["a", ...Array.from({ length: 299 }, (_, n) => `n${n}`)]) nodes.add(name);
    const by = distributor(world, nodes, { store: world.store });
    const { waiting } = await pass(world, nodes, by);
    assert.deepEqual([waiting, [...by.faults]], [1, [["four", "a policy refuses it"]]]);
  });

  /** A pool of 512 CIDRs, if nothing else is said, and how often one was refused. */
  async function refusing(
    isRefused: (record: { readonly node: string; readonly cidr: string }) => boolean,
    range = "10.0.0.0/15",
  ) {
    const clock = new ManualClock();
    let refused = 0;
    const world = await openWorld({
      ...{ pools: [nodesPool("four", range, 24)], clock },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind !== "block" || !("cidr" in record) || !isRefused(record))
              return await store.create(kind, record);
            refused++;
            throw new BerthError("WRITE_REFUSED", `a policy refuses it for ${record.node}`);
          },
        }),
    });
    const nodes = new Nodes();
    const by = distributor(world, nodes, { store: world.store });
    const waiting = async () => {
      refused = 0;
      return [(await pass(world, nodes, by)).waiting, refused];
    };
    return { world, clock, nodes, by, waiting };
  }

  it("for one node has a CIDR at once for another that joins, and also for that one once the pool has changed", async () => {
    const { world, nodes, waiting } = await refusing(({ node }) => node === "a");
    nodes.add("a");
    assert.deepEqual(await waiting(), [1, 3]);
    nodes.add("b");
    assert.deepEqual(await waiting(), [1, 0]);
    assert.deepEqual(await waiting(), [1, 0]);
    const seen = (await world.realStore.get("pool", "four")) ?? assert.fail();
    const changed = nodesPool("four", "10.0.0.0/15", 24, { priority: 7 });
    await world.realStore.replace("pool", seen, changed);
    await world.settle();
    assert.deepEqual(await waiting(), [1, 3]);
    assert.deepEqual(await waiting(), [1, 0]);
    await world[Symbol.asyncDispose]();
  });

  it("for many nodes is asked for few of them, and has one for the others when it has rested", async () => {
    const { world, clock, nodes, waiting } = await refusing(({ node }) => node.startsWith("a"));
    for (let n = 0; n < 400; n++) nodes.add(`a${n}`);
    for (let n = 0; n < 20; n++) nodes.add(`b${n}`);
    const [left = 0, refused = 0] = await waiting();
    assert.equal(left, 420);
    assert.ok(refused <= 3 * (16 + 32), `${refused} were refused`);
    assert.deepEqual(await waiting(), [420, 0]);
    nodes.add("c");
    nodes.add("a-joined");
    assert.deepEqual(await waiting(), [421, 3]);
    assert.deepEqual(await waiting(), [421, 0]);
    for (let tries = 0; tries < 12; tries++) {
      clock.advance(50_000);
      await waiting();
    }
    nodes.show();
    const served = [...nodes.there.values()].filter(({ podCIDRs }) => podCIDRs.length > 0);
    assert.equal(served.length, 21);
    await world[Symbol.asyncDispose]();
  });

  it("for the nodes whose names come first has its last one for another, or for the first of them that is not refused any more", async () => {
    for (const acceptedAgain of ["c", "b"]) {
      const refused = new Set(["a", "b", "c"]);
      const { world, clock, nodes, waiting } = await refusing(({ node }) => refused.has(node), "10.0.0.0/24");
      for (const name of refused) nodes.add(name);
      await waiting();
      refused.delete(acceptedAgain);
      for (let tries = 0; tries < 3; tries++) {
        clock.advance(50_000);
        await waiting();
      }
      const owners = async () => (await world.all("block")).map(({ record }) => record.node);
      assert.deepEqual(await owners(), [acceptedAgain]);
      await world[Symbol.asyncDispose]();
    }
    const { world, nodes, waiting } = await refusing(({ node }) => node === "a", "10.0.0.0/24");
    nodes.add("a");
    await waiting();
    nodes.add("b");
    await waiting();
    nodes.show();
    assert.deepEqual(nodes.there.get("b")?.podCIDRs, ["10.0.0.0/24"]);
    await world[Symbol.asyncDispose]();
  });

  it("says why of a node that waits, and no longer of one that is gone or has its CIDR", async () => {
    const refused = new Set(["a", "b", "c"]);
    const { world, clock, nodes, by, waiting } = await refusing(({ node }) => refused.has(node));
    const said = async () => {
      clock.advance(50_000);
      await waiting();
      return by.faults.get("four");
    };
    for (const name of ["a", "b"]) nodes.add(name);
    assert.equal(await said(), "a policy refuses it for a");
    assert.equal(await said(), "a policy refuses it for a", "whoever else is refused");
    nodes.there.delete("a");
    assert.equal(await said(), "a policy refuses it for b");
    nodes.add("c");
    assert.equal(await said(), "a policy refuses it for b");
    refused.delete("b");
    assert.equal(await said(), "a policy refuses it for c");
    refused.delete("c");
    assert.equal(await said(), undefined);
    await world[Symbol.asyncDispose]();
  });

  it("says why of a node that waits, and no longer of one that was told of a CIDR by others", async () => {
    const { world, clock, nodes, by, waiting } = await refusing(({ node }) => node === "a" || node === "b");
    const [a] = [nodes.add("a"), nodes.add("b")];
    await waiting();
    assert.equal(by.faults.get("four"), "a policy refuses it for a");
    nodes.there.set("a", { ...a, podCIDRs: ["172.16.0.0/24"] });
    clock.advance(50_000);
    await waiting();
    assert.equal(by.faults.get("four"), "a policy refuses it for b");
    await world[Symbol.asyncDispose]();
  });

  it("for a node that goes and comes again is tried at once when it is there again", async () => {
    const { world, nodes, waiting } = await refusing(({ node }) => node === "a" || node === "b");
    const [a] = [nodes.add("a"), nodes.add("b")];
    assert.deepEqual(await waiting(), [2, 6]);
    nodes.there.delete("a");
    assert.deepEqual(await waiting(), [1, 0]);
    nodes.there.set("a", a);
    assert.deepEqual(await waiting(), [2, 3]);
    assert.deepEqual(await waiting(), [2, 0]);
    await world[Symbol.asyncDispose]();
  });

  it("by their names has others for the nodes, and no fault", async () => {
    const first: string[] = [];
    const { world, nodes, by, waiting } = await refusing(({ cidr }) => {
      if (first.length === 0) first.push(cidr);
      return first.includes(cidr);
    });
    nodes.add("a");
    assert.deepEqual(await waiting(), [0, 1]);
    assert.deepEqual([...by.faults], []);
    await world[Symbol.asyncDispose]();
  });
});
