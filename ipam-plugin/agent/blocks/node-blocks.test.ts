// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addr } from "../../../test/support/fixtures.ts";
import type { OwnedBlock } from "../journal/owned-blocks.ts";
import { NodeBlocks } from "./node-blocks.ts";

const block = (cidr: string, holes: readonly string[] = [], uid = "u"): OwnedBlock => {
  return { cidr, uid, pool: "db", holes };
};

const COOLDOWN = 30;
const address = (n: number) => addr(`10.0.0.${n}`);

/** Sixteen addresses in blocks of four whose first address is a hole, each asked about by itself. */
class Expected {
  now = 1_000;
  readonly #held = Array.from({ length: 16 }, () => 0);
  readonly #freed = Array.from({ length: 16 }, () => 0);
  readonly #have = new Set<number>();

  /** Does the same to both. */
  step(blocks: NodeBlocks, what: "hold" | "free" | "block" | "stale" | "later", n: number): void {
    const count = this.#held[n] ?? 0;
    if (what === "later") this.now += 10;
    if (what === "block") {
      blocks.put(block(`10.0.0.${n & 12}/30`, [`10.0.0.${n & 12}/32`]), "giving");
      this.#have.add(n & 12);
    }
    // of a pool that was there before, whose end this node has not heard of
    if (what === "stale") blocks.put({ ...block(`10.0.0.${n}/32`), pool: "before" }, "returning");
    if (what === "hold") {
      blocks.held(address(n));
      this.#held[n] = count + 1;
    }
    if (what === "free" && count > 0) {
      blocks.freed(address(n));
      this.#held[n] = count - 1;
      this.#freed[n] = this.now;
    }
  }

  isFree(n: number): boolean {
    const isUnused = this.#held[n] === 0 && (this.#freed[n] ?? 0) + COOLDOWN <= this.now;
    return isUnused && this.#have.has(n & 12) && n % 4 !== 0;
  }
}

describe("addresses of a node's blocks", () => {
  it("are picked while there are any that are free, be blocks heard of before the addresses or after", () => {
    const step = fc.tuple(fc.constantFrom("hold", "free", "block", "stale", "later"), fc.nat(15));
    const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const expected = new Expected();
      const blocks = new NodeBlocks(() => expected.now);
      for (const [what, n] of steps) {
        expected.step(blocks, what, n);
        const all = Array.from({ length: 16 }, (_, m) => m);
        const free = all.filter((m) => expected.isFree(m)).map(address);
        const got = blocks.pick("db", "IPv4", COOLDOWN);
        assert.equal(typeof got === "string", free.length > 0, JSON.stringify(got));
        if (typeof got === "string") assert.ok(free.includes(got), got);
        assert.deepEqual(
          all.map(address).filter((one) => blocks.isFree("db", one, COOLDOWN)),
          free,
        );
      }
    });
    fc.assert(property);
  });

  it("of a block of 4,096 are all picked, each in a few steps, with every other one a hole", () => {
    const blocks = new NodeBlocks(() => 0);
    const holes = Array.from({ length: 2_048 }, (_, i) => `10.0.${i >> 7}.${(i * 2) & 255}/32`);
    blocks.put(block("10.0.0.0/20", holes), "giving");
    const picked = new Set<string>();
    for (;;) {
      const got = blocks.pick("db", "IPv4", 0);
      if (typeof got !== "string") break;
      picked.add(got);
      blocks.held(got);
    }
    assert.equal(picked.size, 2_048);
  });

  it("are not picked of a block that is being given back, and one in use keeps its block", () => {
    const blocks = new NodeBlocks(() => 0);
    blocks.put(block("fd00::/127"), "giving");
    blocks.held(addr("fd00::1"));
    assert.equal(blocks.stopGiving("fd00::/127"), false);
    blocks.freed(addr("fd00::1"));
    assert.equal(blocks.stopGiving("fd00::/127"), true);
    const shortage = blocks.pick("db", "IPv6", 0);
    assert.deepEqual(typeof shortage === "string" ? shortage : shortage.returning, ["fd00::/127"]);
  });
});
