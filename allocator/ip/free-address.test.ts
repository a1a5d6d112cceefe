// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { freeNeighbours, pickFree, startOffset } from "./free-address.ts";
import { IntervalSet } from "./interval-set.ts";
import { type Interval, sizeOf } from "./ip-range.ts";

/** Disjoint intervals in any order, small enough to be counted through. */
const smallSpace: fc.Arbitrary<Interval[]> = fc
  .array(fc.record({ gap: fc.nat(5), size: fc.integer({ min: 1, max: 12 }) }), { minLength: 1, maxLength: 5 })
  .map((services) => {
    const intervals: Interval[] = [];
    let first = 0n;
    for (const { gap, size } of services) {
      first += BigInt(gap);
      intervals.push({ first, last: first + BigInt(size) - 1n });
      first += BigInt(size);
    }
    return intervals;
  })
  .chain((intervals) => fc.shuffledSubarray(intervals, { minLength: 1 }));

function numbersOf(space: readonly Interval[]): bigint[] {
  return space.flatMap(({ first, last }) => {
    const numbers: bigint[] = [];
    for (let n = first; n <= last; n++) numbers.push(n);
    return numbers;
  });
}

function runsOf(numbers: readonly number[]): IntervalSet {
  const runs = new IntervalSet();
  for (const n of numbers) runs.add(BigInt(n));
  return runs;
}

const takenNumbers = fc.uniqueArray(fc.nat(90));

describe("pickFree", () => {
  it("visits every free number once, from the start and around", () => {
    fc.assert(
      fc.property(smallSpace, takenNumbers, fc.nat(1_000), (space, taken, seed) => {
        const all = numbersOf(space);
        const start = seed % all.length;
        const expected = [...all.slice(start), ...all.slice(0, start)].filter(
          (n) => !taken.includes(Number(n)),
        );
        assert.deepEqual([...pickFree(space, runsOf(taken), BigInt(start))], expected);
      }),
    );
  });

  it("gives nothing for an empty or a full space", () => {
    assert.deepEqual([...pickFree([], new IntervalSet(), 0n)], []);
    assert.deepEqual([...pickFree([{ first: 1n, last: 2n }], runsOf([1, 2]), 1n)], []);
  });

  it("passes over what is taken while it goes", () => {
    const taken = new IntervalSet();
    const picks = pickFree([{ first: 1n, last: 9n }], taken, 3n);
    assert.equal(picks.next().value, 4n);
    taken.addInterval({ first: 5n, last: 7n });
    assert.equal(picks.next().value, 8n);
    taken.add(1n);
    assert.deepEqual([...picks], [9n, 2n, 3n]);
  });

  it("finds the last free number of a /64, and of a /12", () => {
    for (const { first, size } of [
      { first: 0xfd000020n << 96n, size: 2n ** 64n },
      { first: 0x0a100000n, size: 2n ** 20n },
    ]) {
      const space = [{ first, last: first + size - 1n }];
      const taken = new IntervalSet();
      taken.addInterval({ first, last: first + size - 1n });
      taken.remove(first + 77n);
      assert.deepEqual([...pickFree(space, taken, size - 1n)], [first + 77n]);
    }
  });
});

describe("startOffset", () => {
  it("lies in the space, within its first 65536 addresses if it is larger than all of IPv4, and is the same again", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), smallSpace, fc.nat(80), (seed, small, shift) => {
        for (const space of [small, [{ first: 0n, last: 1n << BigInt(shift) }]]) {
          const offset = startOffset(seed, space);
          const size = space.reduce((sum, interval) => sum + sizeOf(interval), 0n);
          assert.ok(offset >= 0n && offset < (size > 2n ** 32n ? 65_536n : size));
          assert.equal(startOffset(seed, space), offset);
        }
      }),
    );
  });

  it("is zero in an empty space", () => assert.equal(startOffset("shop/mysql-0", []), 0n));

  it("stays what it was in the release before: identities come back to it", () => {
    const space = [{ first: 0n, last: 2n ** 64n - 1n }];
    assert.deepEqual(
      ["", "shop/mysql-0", "shop/mysql-1"].map((seed) => startOffset(seed, space)),
      [31_755n, 24_998n, 60_053n],
    );
  });

  it("scatters the pods of one set", () => {
    const space = [{ first: 0n, last: 2n ** 20n }];
    const offsets = new Set(Array.from({ length: 1_000 }, (_, i) => startOffset(`shop/web-${i}`, space)));
    // 1000 balls in 1048576 boxes: 999 or 1000 of them are expected to be alone or first.
    assert.ok(offsets.size > 990, `${offsets.size} different offsets`);
  });
});

describe("freeNeighbours", () => {
  it("takes from both sides, the nearest first, and not the number itself", () => {
    const space = [{ first: 1n, last: 20n }];
    assert.deepEqual(freeNeighbours(space, runsOf([9, 12]), 10n, 4), [11n, 8n, 7n, 13n]);
  });

  it("reaches over gaps between intervals, in whatever order they are given", () => {
    const space = [
      { first: 100n, last: 101n },
      { first: 1n, last: 3n },
    ];
    assert.deepEqual(freeNeighbours(space, new IntervalSet(), 50n, 9), [3n, 2n, 1n, 100n, 101n]);
  });

  it("is what sorting all free numbers by distance gives", () => {
    fc.assert(
      fc.property(smallSpace, takenNumbers, fc.nat(90), fc.nat(12), (space, taken, near, count) => {
        const distance = (n: bigint) => (n < BigInt(near) ? BigInt(near) - n : n - BigInt(near));
        const expected = numbersOf(space)
          .filter((n) => n !== BigInt(near) && !taken.includes(Number(n)))
          .toSorted((a, b) => Number(distance(a) - distance(b)) || Number(a - b))
          .slice(0, count);
        assert.deepEqual(freeNeighbours(space, runsOf(taken), BigInt(near), count), expected);
      }),
    );
  });
});
