// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { runsOf as share } from "../../test/support/runs.ts";
import { IntervalSet } from "./interval-set.ts";
import type { Interval } from "./ip-range.ts";

/** A step of a random walk, on Runs and on a plain Set at once. */
type Step =
  | { readonly verb: "add" | "remove"; readonly n: number }
  | { readonly verb: "cover"; readonly n: number; readonly length: number };

function step(most: number): fc.Arbitrary<Step> {
  const n = fc.nat(most);
  return fc.oneof(
    { weight: 5, arbitrary: fc.record({ verb: fc.constant("add" as const), n }) },
    { weight: 4, arbitrary: fc.record({ verb: fc.constant("remove" as const), n }) },
    { weight: 1, arbitrary: fc.record({ verb: fc.constant("cover" as const), n, length: fc.nat(9) }) },
  );
}

function take(runs: IntervalSet, model: Set<bigint>, { verb, n, ...rest }: Step): void {
  const at = BigInt(n);
  if (verb === "add") {
    assert.equal(runs.add(at), !model.has(at));
    model.add(at);
  } else if (verb === "remove") {
    assert.equal(runs.remove(at), model.delete(at));
  } else {
    const last = at + BigInt("length" in rest ? rest.length : 0);
    runs.addInterval({ first: at, last });
    for (let i = at; i <= last; i++) model.add(i);
  }
}

/** The runs of a plain set, found the slow way. */
function runsOf(model: ReadonlySet<bigint>): Interval[] {
  const runs: { first: bigint; last: bigint }[] = [];
  for (const n of [...model].toSorted((a, b) => (a < b ? -1 : 1))) {
    const run = runs.at(-1);
    if (run !== undefined && run.last + 1n === n) run.last = n;
    else runs.push({ first: n, last: n });
  }
  return runs;
}

function check(runs: IntervalSet, model: ReadonlySet<bigint>): void {
  assert.deepEqual([...runs], runsOf(model));
  assert.equal(runs.size, BigInt(model.size));
}

/** Every third number: none adjacent, so that each is a run of its own and chunks fill. */
function sparse(count: number): { runs: IntervalSet; model: Set<bigint> } {
  const runs = new IntervalSet();
  const model = new Set<bigint>();
  for (let i = 0; i < count; i++) {
    const n = BigInt(((i * 7919) % count) * 3); // 7919 is prime to the counts used here: all of them, scattered
    runs.add(n);
    model.add(n);
  }
  return { runs, model };
}

describe("Runs", () => {
  it("is empty at first", () => {
    const runs = new IntervalSet();
    assert.deepEqual([...runs], []);
    assert.equal(runs.size, 0n);
    assert.equal(runs.has(0n), false);
    assert.equal(runs.remove(0n), false);
    assert.equal(runs.nextFree(5n, 5n), 5n);
    assert.equal(runs.previousFree(5n, 5n), 5n);
  });

  it("joins neighbours and parts them again", () => {
    const runs = new IntervalSet();
    for (const n of [1n, 3n, 2n, 7n]) runs.add(n);
    assert.deepEqual(
      [...runs],
      [
        { first: 1n, last: 3n },
        { first: 7n, last: 7n },
      ],
    );
    runs.remove(2n);
    assert.deepEqual(
      [...runs],
      [
        { first: 1n, last: 1n },
        { first: 3n, last: 3n },
        { first: 7n, last: 7n },
      ],
    );
    assert.equal(runs.size, 3n);
  });

  it("does what a plain set does", () => {
    fc.assert(
      fc.property(fc.array(step(60), { maxLength: 120 }), (steps) => {
        const runs = new IntervalSet();
        const model = new Set<bigint>();
        for (const each of steps) take(runs, model, each);
        check(runs, model);
        for (let n = 0n; n <= 75n; n++) assert.equal(runs.has(n), model.has(n));
      }),
    );
  });

  it("does what a plain set does when it has several chunks", () => {
    fc.assert(
      fc.property(fc.array(step(9_000), { minLength: 50, maxLength: 300 }), (steps) => {
        const { runs, model } = sparse(3_000);
        for (const each of steps) take(runs, model, each);
        check(runs, model);
      }),
      { numRuns: share(20, 3) },
    );
  });

  it("swallows whole chunks, and parts of those on both sides", () => {
    fc.assert(
      fc.property(fc.nat(9_000), fc.nat(9_000), (a, b) => {
        const { runs, model } = sparse(3_000);
        const [first, last] = a < b ? [BigInt(a), BigInt(b)] : [BigInt(b), BigInt(a)];
        runs.addInterval({ first, last });
        for (let n = first; n <= last; n++) model.add(n);
        check(runs, model);
        runs.add(0n);
        runs.add(8_999n);
        model.add(0n).add(8_999n);
        check(runs, model);
      }),
      { numRuns: share(40, 4) },
    );
  });

  it("is empty again when all is removed, in any order", () => {
    const { runs, model } = sparse(3_000);
    for (const n of [...model].toReversed()) {
      assert.equal(runs.remove(n), true);
    }
    assert.deepEqual([...runs], []);
    assert.equal(runs.size, 0n);
    assert.equal(runs.add(4n), true);
    assert.deepEqual([...runs], [{ first: 4n, last: 4n }]);
  });

  it("fills up to one run", () => {
    const { runs } = sparse(3_000);
    for (let n = 0n; n <= 8_997n; n++) runs.add(n);
    assert.deepEqual([...runs], [{ first: 0n, last: 8_997n }]);
    assert.equal(runs.size, 8_998n);
  });

  it("finds the next and the previous free number as a search one by one does", () => {
    const bounds = fc
      .tuple(fc.nat(45), fc.nat(45))
      .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(40)), bounds, (taken, [low, high]) => {
        const runs = new IntervalSet();
        for (const n of taken) runs.add(BigInt(n));
        const free = Array.from({ length: high - low + 1 }, (_, i) => low + i)
          .filter((n) => !taken.includes(n))
          .map(BigInt);
        assert.equal(runs.nextFree(BigInt(low), BigInt(high)), free.at(0));
        assert.equal(runs.previousFree(BigInt(high), BigInt(low)), free.at(-1));
      }),
    );
  });

  it("answers nothing for a search that ends before it begins", () => {
    assert.equal(new IntervalSet().nextFree(6n, 5n), undefined);
    assert.equal(new IntervalSet().previousFree(5n, 6n), undefined);
  });

  for (const { space, base } of [
    { space: "an IPv4 /12", base: 0x0a100000n },
    { space: "the end of IPv6", base: 2n ** 128n - 2n ** 20n },
  ]) {
    it(`leaves the one free number in a thousand of ${space}`, () => {
      const runs = new IntervalSet();
      runs.addInterval({ first: base, last: base + 2n ** 20n - 1n });
      for (let n = 500n; n < 2n ** 20n; n += 1_000n) runs.remove(base + n);
      const found: bigint[] = [];
      const last = base + 2n ** 20n - 1n;
      for (let n = runs.nextFree(base, last); n !== undefined; n = runs.nextFree(n + 1n, last)) found.push(n);
      assert.equal(found.length, 1_049);
      assert.deepEqual([found[0], found.at(-1)], [base + 500n, base + 1_048_500n]);
      assert.equal(runs.size, 2n ** 20n - 1_049n);
    });
  }
});
