// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import {
  addr,
  granted as orThrow,
  parsed,
  poolRecord,
  refusalOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { familyOf, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { contains, fullInterval } from "../ip/ip-range.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { holesOf, isHole } from "../model/block.ts";
import { grantBlock } from "./testing/grant-block.ts";
import { grantTo, of, WEB } from "./testing/grants-to-nodes.ts";
import { reserveAndBind } from "./testing/reserved-and-bound.ts";

describe("a fixed address", () => {
  const fixed = (world: World, name: string, address: string) =>
    reserve(world.context, podAllocation(world, name, entries(address)), "pod");

  it("in a block of a node is refused, with node, block and addresses beside it", async () => {
    const pool = poolRecord("web", "10.0.0.0/28", { blockSize: { ipv4: 29 } });
    await using world = await openWorld({ pools: [pool] });
    const got = await grantTo(world, "node-a", { pool });
    const inside = got?.key === "10.0.0.0/29" ? "10.0.0.5" : "10.0.0.9";
    const near =
      got?.key === "10.0.0.0/29" ? "10.0.0.8, 10.0.0.9, 10.0.0.10" : "10.0.0.7, 10.0.0.6, 10.0.0.5";
    assert.equal(
      refusalOf(await fixed(world, "a", inside)),
      `ADDRESS_TAKEN: address ${inside} in pool "web" is in block ${got?.key} of node node-a, for pods that need no fixed address; ` +
        `free nearby: ${near}; or list it in spec.reserved of the pool, which takes effect when the node has given the block back`,
    );
    assert.deepEqual([await world.all("claim"), await world.all("reservation")], [[], []]);
  });

  it("is refused the same when the cache does not know the block yet, and leaves nothing behind", async () => {
    await using world = await openWorld({ pools: [WEB] });
    const block = {
      cidr: "10.0.0.4/30",
      pool: "web",
      node: "node-a",
      nodeUID: "u",
      holes: [],
      granted: true,
    };
    await world.realStore.create("block", block);
    const behind = { ...world.context, view: viewOf({ pools: [WEB] }) };
    const got = await reserve(behind, podAllocation(world, "a", entries("10.0.0.5")), "pod");
    assert.match(
      refusalOf(got),
      /^ADDRESS_TAKEN: address 10\.0\.0\.5 in pool "web" is in block 10\.0\.0\.4\/30 of node node-a/,
    );
    assert.deepEqual([await world.all("claim"), await world.all("reservation")], [[], []]);
  });

  it("that is a hole of the block, or kept back by the pool, is given all the same", async () => {
    const pool = poolRecord("web", "10.0.0.0/29", { blockSize: { ipv4: 29 }, reserved: ["10.0.0.6"] });
    await using world = await openWorld({ pools: [pool] });
    orThrow(await fixed(world, "a", "10.0.0.5"));
    const got = await grantTo(world, "node-a", { pool });
    assert.deepEqual(got?.record.holes, ["10.0.0.0/32", "10.0.0.5/32", "10.0.0.6/31"]);
    assert.deepEqual(orThrow(await fixed(world, "b", "10.0.0.6")).addresses, ["10.0.0.6"]);
    assert.match(refusalOf(await fixed(world, "c", "10.0.0.4")), /^ADDRESS_TAKEN/);
  });

  it("of any choice is one that no node has", async () => {
    await using world = await openWorld({ pools: [WEB] });
    for (const node of ["a", "b", "c"]) await grantTo(world, `node-${node}`);
    const names = ["a", "b", "c", "d"];
    const outcomes = [];
    for (const name of names) {
      outcomes.push(await reserve(world.context, podAllocation(world, name, { pools: ["web"] }), "pod"));
      await world.settle();
    }
    const blocks = (await world.all("block")).map(({ record }) => record);
    const open = 14 - blocks.reduce((sum, block) => sum + 4 - [...holesOf(block)].length, 0);
    const given = outcomes.flatMap((got) => (got.kind === "refused" ? [] : got.addresses));
    assert.equal(given.length, Math.min(open, names.length));
    for (const address of given)
      assert.ok(!blocks.some((block) => has(block.cidr, address) && !isHole(block, address)));
  });
});

function has(cidr: string, text: string): boolean {
  const network = parseCidr(cidr);
  const address = addr(text);
  return network?.family === familyOf(address) && contains(fullInterval(network), toNumber(address));
}

describe("fixed addresses and grants at once", () => {
  it("never have an address both, whatever comes in between", async () => {
    const any = fc.record({
      seed: fc.nat(),
      acts: fc.array(fc.constantFrom("grant", "any", "exact"), { minLength: 2, maxLength: 14 }),
      length: fc.constantFrom(29, 30, 31, 32),
    });
    const property = fc.asyncProperty(any, async ({ seed, acts, length }) => {
      const pool = poolRecord("web", "10.0.0.0/28", { blockSize: { ipv4: length } });
      await using world = await openWorld({ pools: [pool], seed });
      const work = acts.map(async (act, i) => {
        if (act === "grant")
          return void (await grantBlock(world.another(i), parsed(pool), of(`node-${i}`), new IntervalSet()));
        const request = act === "any" ? { pools: ["web"] } : entries(`10.0.0.${1 + ((seed + i) % 14)}`);
        await reserveAndBind(world, i, request);
      });
      await Promise.all(work);
      const blocks = (await world.all("block")).map(({ record }) => record);
      for (const { record } of await world.all("claim")) {
        for (const address of record.binding?.node === "n" ? record.addresses : []) {
          const owner = blocks.find(
            (block) => block.granted === true && has(block.cidr, address) && !isHole(block, address),
          );
          assert.equal(owner, undefined, `${address} is bound and in a block`);
        }
      }
    });
    await fc.assert(property, { numRuns: runsOf(300) });
  });
});
