// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Backoff } from "./backoff.ts";

describe("Backoff", () => {
  it("doubles up to its longest, and begins again when it is reset", () => {
    const backoff = new Backoff({ base: 100, longest: 1_000 }, { fraction: () => 1 });
    assert.deepEqual(
      Array.from({ length: 6 }, () => backoff.next()),
      [100, 200, 400, 800, 1_000, 1_000],
    );
    backoff.reset();
    assert.equal(backoff.next(), 100);
  });

  it("waits half of that at least", () => {
    const backoff = new Backoff({ base: 100, longest: 1_000 }, { fraction: () => 0 });
    assert.deepEqual([backoff.next(), backoff.next()], [50, 100]);
  });

  it("does not overflow after years of failures", () => {
    const backoff = new Backoff({ base: 100, longest: 1_000 }, { fraction: () => 1 });
    for (let i = 0; i < 5_000; i++) backoff.next();
    assert.equal(backoff.next(), 1_000);
  });
});
