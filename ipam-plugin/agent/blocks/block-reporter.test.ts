// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { NodeBench } from "../testing/node-bench.ts";
import { ONE, ReporterBench } from "../testing/reporter-bench.ts";

let bench: ReporterBench;
let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    bench = await ReporterBench.open();
    node = bench.node;
  });
  afterEach(() => bench.close());
}

describe("a block that is asked back while it is in use", () => {
  setUp();
  const OTHER = "10.0.0.6/31";

  it("stays, an empty one goes in its place, once, and it is said that it is in use", async () => {
    await bench.grant(ONE);
    await node.add();
    await bench.grant(OTHER, "10.0.0.8/31");
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    for (let look = 0; look < 3; look++) {
      await bench.reporter.look();
      await bench.hear();
    }
    const returned = await Promise.all([ONE, OTHER, "10.0.0.8/31"].map((cidr) => bench.isReturned(cidr)));
    assert.deepEqual(returned, [false, true, false]);
    assert.deepEqual(await bench.statusOf(ONE), { node: "node-a", used: 1 });
  });

  it("is given from last, so that it becomes empty", async () => {
    await bench.grant(ONE);
    await node.add({ cid: "a" });
    await bench.change(ONE, { recalledAt: 1 });
    await bench.grant(OTHER);
    const given: string[] = [];
    for (const cid of ["b", "c", "d"]) given.push(...(await node.add({ cid })));
    assert.deepEqual(given, ["10.0.0.6", "10.0.0.7", "10.0.0.5"]);
  });
});

describe("what is said of a block's use", () => {
  setUp();

  it("is said once in 30 s at most, and only when it has changed", async () => {
    await bench.grant(ONE);
    await bench.reporter.look();
    assert.equal(bench.written, 0);
    await node.add({ cid: "a" });
    await bench.reporter.look();
    await node.add({ cid: "b" });
    await bench.reporter.look();
    await bench.hear();
    await bench.reporter.look();
    assert.deepEqual([bench.written, (await bench.statusOf(ONE))?.used], [1, 1]);
    await node.clock.advance(30_000);
    await bench.reporter.look();
    await bench.hear();
    await node.clock.advance(30_000);
    await bench.reporter.look();
    assert.deepEqual([bench.written, (await bench.statusOf(ONE))?.used], [2, 2]);
  });

  it("is said within 2 s where fewer are used and something of the pool is asked back", async () => {
    await bench.grant(ONE, "10.0.0.8/31");
    for (const cid of ["a", "b", "c", "d"]) await node.add({ cid });
    await bench.reporter.look();
    await bench.hear();
    assert.equal(bench.written, 2);
    const writes = async () => {
      const before = bench.written;
      await node.clock.advance(2_000);
      await bench.reporter.look();
      await bench.hear();
      return bench.written - before;
    };
    await node.del({ cid: "a" });
    assert.equal(await writes(), 0, "nobody lacks any");
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    assert.equal(await writes(), 1);
    await node.del({ cid: "b" });
    assert.ok((await writes()) > 0);
  });

  it("is said of a few blocks in one look", async () => {
    const cidrs = Array.from({ length: 6 }, (_, i) => `10.0.0.${i * 2}/31`);
    await bench.grant(...cidrs);
    for (let i = 0; i < 12; i++) await node.add({ cid: `c${i}` });
    for (const expected of [4, 6, 6]) {
      await bench.reporter.look();
      assert.equal(bench.written, expected);
    }
  });
});
