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
    assert.deepEqual(await seen(), [1, 1, why]);
    const given = (await world.all("block")).map(({ record }) => record.pool);
    assert.deepEqual(given, [SIX.name], "of the other pool");
    assert.deepEqual(await seen(), [1, 0, why]);
    clock.advance(5_000);
    assert.deepEqual(await seen(), [1, 1, why]);
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
});
