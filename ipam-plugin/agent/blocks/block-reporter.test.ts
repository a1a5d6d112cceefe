// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
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

describe("a block whose status cannot be written", () => {
  setUp();
  const OTHER = "10.0.0.6/31";
  const REFUSED = new BerthError("INTERNAL", "a policy refuses it");
  const LOST = new BerthError("TIMED_OUT", "no answer");

  /** What the write of a block's status meets, by its CIDR. */
  const faults = new Map<string, Error>();
  /** Whose status was to be written. */
  let tried: string[];
  beforeEach(() => {
    tried = [];
    faults.clear();
    bench.around = async (write, { key }) => {
      tried.push(key);
      const fault = faults.get(key);
      if (fault !== undefined) throw fault;
      return await write();
    };
  });

  it("keeps no other one from being given back as soon as its last sandbox has ended", async () => {
    await bench.grant(ONE, OTHER);
    for (const cid of ["a", "b", "c"]) await node.add({ cid });
    await bench.change(OTHER, { recalledAt: 1 });
    await bench.hear();
    faults.set(ONE, REFUSED);
    const { reporter } = bench;
    reporter.start();
    await bench.pass(60_000);
    for (const cid of ["a", "b", "c"]) await node.del({ cid });
    await bench.pass(10_000);
    assert.equal(await bench.isReturned(OTHER), true);
    await reporter.close();
  });

  it("is tried less and less often, and at once when its record changes", async () => {
    await bench.grant(ONE);
    await node.add();
    faults.set(ONE, REFUSED);
    bench.reporter.start();
    await bench.pass(300_000);
    assert.ok(tried.length >= 6 && tried.length <= 10, `${tried.length} times`);
    const before = tried.length;
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    bench.reporter.wake();
    await bench.pass(0);
    assert.equal(tried.length, before + 1);
    await bench.reporter.close();
  });

  it("keeps no other one's use from being said, be they as many as are said in one look", async () => {
    const cidrs = Array.from({ length: 5 }, (_, i) => `10.0.0.${i * 2}/31`);
    await bench.grant(...cidrs);
    for (let i = 0; i < 10; i++) await node.add({ cid: `c${i}` });
    for (const cidr of cidrs.slice(0, 4)) faults.set(cidr, REFUSED);
    for (let look = 0; look < 2; look++) await bench.reporter.look().catch(() => undefined);
    assert.equal((await bench.statusOf(cidrs[4] ?? ""))?.used, 2);
  });

  it("ends the look with two others if it is the API server that does not answer, and comes last in the next one", async () => {
    const cidrs = Array.from({ length: 5 }, (_, i) => `10.0.0.${i * 2}/31`);
    await bench.grant(...cidrs);
    for (let i = 0; i < 10; i++) await node.add({ cid: `c${i}` });
    const triedIn = async (look: Promise<void>) => {
      await look;
      return tried.splice(0).map((cidr) => cidrs.indexOf(cidr));
    };
    for (const cidr of cidrs) faults.set(cidr, LOST);
    const inVain = () => triedIn(assert.rejects(bench.reporter.look(), LOST));
    assert.deepEqual(
      [await inVain(), await inVain(), await inVain()],
      [
        [0, 1, 2],
        [3, 4, 0],
        [1, 2, 3],
      ],
    );
    faults.clear();
    faults.set(cidrs[4] ?? "", LOST);
    assert.deepEqual(await inVain(), [4, 0, 1, 2, 3]);
    faults.clear();
    assert.deepEqual(await triedIn(bench.reporter.look()), [4]);
  });
});
