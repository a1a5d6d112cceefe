// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deathsAt, someOf } from "./runs.ts";

describe("what is drawn of deaths", () => {
  const all = deathsAt([1, 2, 3]);

  it("is all of them where everything is run", () => {
    assert.deepEqual(someOf(all, 6, 1), all);
    assert.deepEqual(
      all.map(({ failure, at }) => `${failure} ${at}`),
      ["before 1", "before 2", "before 3", "after 1", "after 2", "after 3"],
    );
  });

  it("is a few in a short run, in their order, and the same by the same seed", () => {
    const some = someOf(all, 2, 7);
    assert.equal(some.length, 2);
    assert.deepEqual(
      all.filter((death) => some.includes(death)),
      some,
    );
    assert.deepEqual(someOf(all, 2, 7), some);
  });

  it("is all of them in time", () => {
    const drawn = Array.from({ length: 40 }, (_, seed) => someOf(all, 2, seed)).flat();
    assert.deepEqual(new Set(drawn), new Set(all));
  });
});
