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
const REMEMBERED_MS = 600_000;
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

const FOUR = [0, 1, 2, 3];

/** Four addresses of one block, and how long each has to cool yet, whatever the clock says. */
class Cooling {
  #now = 10_000;
  readonly #left = new Map<number, number>(); // address -> ms
  readonly #held = new Set<number>();
  readonly blocks = new NodeBlocks(() => this.#now);

  constructor() {
    this.blocks.put(block("10.0.0.0/30"), "giving");
  }

  pass(ms: number): void {
    this.#now += ms;
    for (const [n, left] of this.#left)
      if (left <= ms) this.#left.delete(n);
      else this.#left.set(n, Math.min(left - ms, COOLDOWN));
  }

  hold(n: number): void {
    if (this.#held.has(n)) return;
    this.blocks.held(address(n));
    this.#held.add(n);
    this.#left.delete(n);
  }

  free(n: number): void {
    if (!this.#held.delete(n)) return;
    this.blocks.freed(address(n));
    this.#left.set(n, COOLDOWN);
  }

  isFree(n: number): boolean {
    return !this.#held.has(n) && !this.#left.has(n);
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

  it("cool for no longer than they must, however the clock is set", () => {
    const step = fc.tuple(fc.constantFrom("hold", "free", "later", "back"), fc.nat(3));
    const property = fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
      const cooling = new Cooling();
      for (const [what, n] of steps) {
        cooling.pass({ later: 10, back: -50 * n, hold: 0, free: 0 }[what]);
        if (what === "hold") cooling.hold(n);
        if (what === "free") cooling.free(n);
        const free = FOUR.filter((m) => cooling.isFree(m));
        assert.deepEqual(
          FOUR.filter((m) => cooling.blocks.isFree("db", address(m), COOLDOWN)),
          free,
        );
      }
    });
    fc.assert(property);
  });

  it("that a clock far ahead has freed are remembered as freed now, and no longer than others", () => {
    let now = 2 * REMEMBERED_MS;
    const blocks = new NodeBlocks(() => now);
    blocks.wasFreed(address(1), 100 * REMEMBERED_MS);
    blocks.freed(address(2));
    blocks.put(block("10.0.0.0/30", ["10.0.0.0/32", "10.0.0.2/31"]), "giving");
    assert.equal(typeof blocks.pick("db", "IPv4", COOLDOWN), "object");
    now += COOLDOWN;
    assert.equal(blocks.pick("db", "IPv4", COOLDOWN), address(1));
    now += REMEMBERED_MS;
    blocks.freed(address(2));
    blocks.put(block("10.0.0.0/30", ["10.0.0.0/32", "10.0.0.2/31"], "another"), "giving");
    assert.equal(blocks.pick("db", "IPv4", 2 * REMEMBERED_MS), address(1));
  });

  it("that were freed are remembered for as long as any pool has them cool", () => {
    let now = 2 * REMEMBERED_MS;
    const longest = 3 * REMEMBERED_MS;
    const blocks = new NodeBlocks(
      () => now,
      () => longest,
    );
    blocks.freed(address(1));
    now += longest - 1;
    blocks.freed(address(2)); // a look at what is to be forgotten
    blocks.put(block("10.0.0.0/30", ["10.0.0.0/32", "10.0.0.2/31"]), "giving");
    assert.equal(typeof blocks.pick("db", "IPv4", longest), "object");
    now += 1;
    assert.equal(blocks.pick("db", "IPv4", longest), address(1));
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
