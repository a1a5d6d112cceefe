// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../base/errors.ts";
import { type Address, bitsOf, type Cidr, fromNumber, parseAddress, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval, type Interval } from "../ip/ip-range.ts";
import { type AddressSpace, classify, readSpace } from "./address-space.ts";
import { BlockSpace, blockAround, blockLength, closedIn, openIn } from "./blocks.ts";
import type { PoolSpec } from "./pool-spec.ts";

function spaceFrom(spec: Pick<PoolSpec, "ranges" | "reserved">): AddressSpace {
  const space = readSpace(spec);
  assert.ok(!isRefusal(space), isRefusal(space) ? space.message : "");
  return space;
}

function cidr(text: string): Cidr {
  const found = parseCidr(text);
  assert.ok(found);
  return found;
}

function addr(text: string): Address {
  const found = parseAddress(text);
  assert.ok(found);
  return found;
}

function words(intervals: readonly Interval[], family: "IPv4" | "IPv6" = "IPv4"): string[] {
  return intervals.map(({ first, last }) => `${fromNumber(first, family)}-${fromNumber(last, family)}`);
}

const NOTHING = new IntervalSet();

function texts(blocks: BlockSpace, node = "", taken: IntervalSet = NOTHING): string[] {
  return [...blocks.free(taken, node)].map(({ text }) => text);
}

describe("the blocks of a pool", () => {
  const shared = spaceFrom({ ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.50", to: "10.0.0.70" }] });

  it("are aligned, and reach as far as the pool's range does", () => {
    assert.deepEqual(texts(new BlockSpace(shared, "IPv4", 29)).toSorted(), [
      "10.0.0.48/29",
      "10.0.0.56/29",
      "10.0.0.64/29",
    ]);
    assert.deepEqual(words(openIn(shared, cidr("10.0.0.48/29"))), ["10.0.0.50-10.0.0.55"]);
    assert.deepEqual(words(openIn(shared, cidr("10.0.0.64/29"))), ["10.0.0.64-10.0.0.70"]);
    assert.deepEqual(words(closedIn(shared, cidr("10.0.0.48/29"))), ["10.0.0.48-10.0.0.49"]);
    assert.deepEqual(words(openIn(shared, cidr("10.0.0.72/29"))), []);
  });

  it("may be one address each", () => {
    const single = new BlockSpace(shared, "IPv4", 32);
    assert.equal(single.count, 21n);
    assert.equal(new Set(texts(single, "node-a")).size, 21);
  });

  it("have nothing that is reserved, excluded or a gateway, and a block of only that is none", () => {
    const space = spaceFrom({
      ranges: [{ cidr: "10.0.0.0/28", gateway: "10.0.0.1", exclude: ["10.0.0.4-10.0.0.6"] }],
      reserved: ["10.0.0.7-10.0.0.9"],
    });
    assert.deepEqual(texts(new BlockSpace(space, "IPv4", 30)).toSorted(), [
      "10.0.0.0/30",
      "10.0.0.12/30",
      "10.0.0.8/30",
    ]);
    assert.deepEqual(words(openIn(space, cidr("10.0.0.0/30"))), ["10.0.0.2-10.0.0.3"]);
    assert.deepEqual(words(closedIn(space, cidr("10.0.0.8/30"))), ["10.0.0.8-10.0.0.9"]);
  });

  it("of two ranges that meet in one block are that one block", () => {
    const space = spaceFrom({
      ranges: [
        { cidr: "10.0.0.0/24", from: "10.0.0.34", to: "10.0.0.40" },
        { cidr: "10.0.0.0/24", from: "10.0.0.20", to: "10.0.0.33" },
      ],
    });
    assert.deepEqual(texts(new BlockSpace(space, "IPv4", 27)).toSorted(), ["10.0.0.0/27", "10.0.0.32/27"]);
    assert.deepEqual(words(openIn(space, cidr("10.0.0.32/27"))), ["10.0.0.32-10.0.0.40"]);
  });

  it("of a /12 and of a /64 are picked without a walk over them", () => {
    const large = new BlockSpace(spaceFrom({ ranges: [{ cidr: "10.16.0.0/12" }] }), "IPv4", 26);
    assert.equal(large.count, 16_384n);
    const wide = new BlockSpace(spaceFrom({ ranges: [{ cidr: "fd00:20::/64" }] }), "IPv6", 122);
    assert.equal(wide.count, 1n << 58n);
    const first = wide.free(NOTHING, "node-a").next().value;
    assert.equal(first?.prefixLength, 122);
    assert.equal(first === undefined ? 1n : first.base & 63n, 0n);
  });

  it("are looked for at the same place by the same node, and at other places by others", () => {
    const large = new BlockSpace(spaceFrom({ ranges: [{ cidr: "10.16.0.0/12" }] }), "IPv4", 26);
    const first = (node: string) => large.free(NOTHING, node).next().value?.text;
    assert.equal(first("node-1"), first("node-1"));
    const places = new Set(Array.from({ length: 100 }, (_, i) => first(`node-${i}`)));
    assert.ok(places.size >= 98, `${places.size} places of 100 nodes`);
  });

  it("are known by any of their addresses", () => {
    const pool = { spec: { ranges: [], blockSize: { ipv4: 26, ipv6: 122 } } };
    assert.equal(blockAround(pool, addr("10.0.0.130"))?.text, "10.0.0.128/26");
    assert.equal(blockAround(pool, addr("fd00::ff"))?.text, "fd00::c0/122");
    assert.equal(blockAround({ spec: { ranges: [] } }, addr("10.0.0.1")), undefined);
  });

  it("are none when they would be larger than a block may be", () => {
    assert.equal(blockLength({ spec: { ranges: [], blockSize: { ipv4: 19 } } }, "IPv4"), undefined);
    assert.equal(blockLength({ spec: { ranges: [], blockSize: { ipv4: 20 } } }, "IPv4"), 20);
  });
});

const anySpec = fc.record({
  from: fc.integer({ min: 1, max: 120 }),
  size: fc.integer({ min: 1, max: 60 }),
  second: fc.option(
    fc.record({ from: fc.integer({ min: 190, max: 220 }), size: fc.integer({ min: 1, max: 30 }) }),
  ),
  gateway: fc.integer({ min: 1, max: 254 }),
  exclude: fc.array(fc.tuple(fc.integer({ min: 1, max: 250 }), fc.integer({ min: 0, max: 9 })), {
    maxLength: 4,
  }),
  reserved: fc.array(fc.integer({ min: 0, max: 59 }), { maxLength: 6 }),
});

function specOf(
  drawn: typeof anySpec extends fc.Arbitrary<infer T> ? T : never,
): Pick<PoolSpec, "ranges" | "reserved"> {
  const at = (n: number) => `10.0.0.${n}`;
  const cidr = "10.0.0.0/24";
  const last = drawn.from + drawn.size - 1;
  const exclude = drawn.exclude.map(([first, more]) => `${at(first)}-${at(Math.min(255, first + more))}`);
  const range = { cidr, from: at(drawn.from), to: at(last), gateway: at(drawn.gateway), exclude };
  const { second } = drawn;
  const more =
    second === null ? [] : [{ cidr, from: at(second.from), to: at(second.from + second.size - 1) }];
  return {
    ranges: [range, ...more],
    reserved: drawn.reserved.map((n) => at(Math.min(last, drawn.from + n))),
  };
}

describe("the blocks of any pool", () => {
  it("are disjoint, aligned, together all that is open, and each has something open", () => {
    const property = fc.property(
      anySpec,
      fc.integer({ min: 24, max: 32 }),
      fc.string(),
      (drawn, length, node) => {
        const space = spaceFrom(specOf(drawn));
        const blocks = new BlockSpace(space, "IPv4", length);
        const found = [...blocks.free(NOTHING, node)];
        assert.equal(BigInt(found.length), blocks.count);
        const given = new Map<bigint, string>(); // address -> its block
        for (const block of found) {
          assert.equal(block.base % (1n << BigInt(bitsOf("IPv4") - length)), 0n);
          const open = openIn(space, block);
          assert.ok(open.length > 0, `${block.text} has nothing to give`);
          for (const n of each(open)) {
            assert.equal(given.get(n), undefined);
            given.set(n, block.text);
          }
          const closed = [...each(closedIn(space, block))];
          assert.equal(BigInt(closed.length + [...each(open)].length), sizeOfBlock(block));
        }
        for (let n = 0x0a00_0000n; n < 0x0a00_0100n; n++) {
          const isOpen = classify(space, fromNumber(n, "IPv4")) === "open";
          assert.equal(given.has(n), isOpen, fromNumber(n, "IPv4"));
        }
      },
    );
    fc.assert(property);
  });

  it("are found to the last one, whatever is taken and from wherever a node begins", () => {
    const property = fc.property(
      anySpec,
      fc.integer({ min: 27, max: 32 }),
      fc.string(),
      (drawn, length, node) => {
        const blocks = new BlockSpace(spaceFrom(specOf(drawn)), "IPv4", length);
        const taken = new IntervalSet();
        for (let left = blocks.count; left > 0n; left--) {
          const next = blocks.free(taken, `${node}${left}`).next().value;
          assert.ok(next, `${left} blocks are left and none is found`);
          assert.ok(taken.add(blocks.numberOf(next)), `${next.text} was taken`);
        }
        assert.deepEqual(texts(blocks, node, taken), []);
      },
    );
    fc.assert(property);
  });
});

function* each(intervals: readonly Interval[]): Generator<bigint> {
  for (const { first, last } of intervals) for (let n = first; n <= last; n++) yield n;
}

function sizeOfBlock(block: Cidr): bigint {
  const { first, last } = fullInterval(block);
  return last - first + 1n;
}
