// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import type { NodeBench } from "../testing/node-bench.ts";
import { ONE, ReporterBench } from "../testing/reporter-bench.ts";
import { EMPTY_MS } from "./empty-blocks.ts";

const LOST = new BerthError("STORE_UNAVAILABLE", "no answer");

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

describe("a block that is given back", () => {
  setUp();

  it("at once when it is asked back and nobody uses it, and not before its last sandbox has ended", async () => {
    await bench.grant(ONE);
    await node.add();
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    await bench.reporter.look();
    assert.deepEqual(await bench.statusOf(ONE), { node: "node-a", used: 1 });
    await node.del();
    await bench.reporter.look();
    assert.equal(await bench.isReturned(ONE), true);
    assert.equal(bench.given(), "returning");
  });

  it("when it was empty for five minutes and there is room for two blocks without it", async () => {
    await bench.grant(ONE, "10.0.0.6/31");
    await bench.reporter.look();
    await node.clock.advance(EMPTY_MS);
    await bench.reporter.look();
    assert.equal(bench.written, 0, "two addresses beside it are too few");
    await bench.grant("10.0.0.8/31");
    await bench.reporter.look();
    await node.clock.advance(EMPTY_MS - 1);
    await bench.reporter.look();
    const returned = async () => {
      const all = [ONE, "10.0.0.6/31", "10.0.0.8/31"].map((cidr) => bench.isReturned(cidr));
      return (await Promise.all(all)).filter((one) => one).length;
    };
    assert.equal(await returned(), 1, "and then the others are needed");
    await node.clock.advance(EMPTY_MS * 3);
    await bench.reporter.look();
    assert.equal(await returned(), 1);
  });

  it("five minutes after its last sandbox, be it one that came and went between two looks", async () => {
    await bench.grant(ONE);
    await bench.reporter.look();
    await node.clock.advance(EMPTY_MS - 1);
    await node.add();
    await node.del();
    await bench.grant("10.0.0.6/31", "10.0.0.8/31");
    await node.clock.advance(1);
    await bench.reporter.look();
    assert.equal(await bench.isReturned(ONE), false);
    await node.clock.advance(EMPTY_MS);
    await bench.reporter.look();
    const returned = await Promise.all(
      [ONE, "10.0.0.6/31", "10.0.0.8/31"].map((cidr) => bench.isReturned(cidr)),
    );
    assert.deepEqual(returned, [true, false, false]);
  });

  it("when it was empty for five minutes, the last of its pool too, where nodes have nothing ahead", async () => {
    const blockSize = { ipv4: 31, ahead: 0 };
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize })));
    await bench.grant(ONE);
    await node.add();
    await bench.reporter.look();
    await node.clock.advance(EMPTY_MS);
    await bench.reporter.look();
    assert.equal(await bench.isReturned(ONE), false);
    await node.del();
    await bench.reporter.look();
    await node.clock.advance(EMPTY_MS);
    await bench.reporter.look();
    assert.equal(await bench.isReturned(ONE), true);
  });

  it("in place of one that is in use is said before that one is said to be in use", async () => {
    await bench.grant(ONE);
    await node.add();
    await bench.grant("10.0.0.2/31");
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    const words: string[] = [];
    bench.around = async (write) => {
      const said = await write();
      if (said.kind === "replaced") words.push(`${said.stored.key} ${said.stored.record.status?.used} used`);
      return said;
    };
    await bench.reporter.look();
    assert.deepEqual(words, ["10.0.0.2/31 0 used", `${ONE} 1 used`]);
    assert.equal(await bench.isReturned("10.0.0.2/31"), true);
  });

  it("is in the journal before it is said", async () => {
    await bench.grant(ONE);
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    bench.around = async (write) => {
      assert.deepEqual(
        node.parts.journal.load().blocks.map(({ cidr, returningAt }) => [cidr, returningAt > 0]),
        [[ONE, true]],
      );
      return await write();
    };
    await bench.reporter.look();
    assert.equal(bench.written, 1);
  });

  it("is not said when it cannot be put down, and is given from again", async () => {
    await bench.grant(ONE);
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    node.diskFault = new BerthError("STORE_FULL", "full");
    await assert.rejects(bench.reporter.look(), { code: "STORE_FULL" });
    node.diskFault = undefined;
    assert.deepEqual([bench.written, bench.given()], [0, "giving"]);
  });

  for (const [what, isWritten] of [
    ["before the word has arrived", false],
    ["after it has, and before it was answered", true],
  ] as const) {
    it(`is said until the record has it, by the next process too, if one ends ${what}`, async () => {
      await bench.grant(ONE);
      await bench.change(ONE, { recalledAt: 1 });
      await bench.hear();
      bench.around = async (write) => {
        if (isWritten) await write();
        throw LOST;
      };
      await assert.rejects(bench.reporter.look(), LOST);
      bench.around = (write) => write();
      for (const next of [
        () => bench.restart(),
        () => bench.hear(),
        () => bench.reporter.look(),
        () => bench.hear(),
      ]) {
        await next();
        assert.equal(bench.given(), "returning");
      }
      assert.equal(await bench.isReturned(ONE), true);
      const before = bench.written;
      bench.around = () => assert.fail("once the record has it nobody says it again");
      await bench.reporter.look();
      assert.equal(bench.written, before);
    });
  }

  it("stays so when an older word about its use arrives late", async () => {
    await bench.grant(ONE);
    await node.add();
    const late = Promise.withResolvers<void>();
    bench.around = async (write) => {
      await late.promise;
      return await write();
    };
    const reporting = bench.reporter.look();
    await new Promise(setImmediate);
    await node.del();
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    bench.around = (write) => write();
    await bench.reporterOfNode().look();
    assert.equal(await bench.isReturned(ONE), true);
    late.resolve();
    await reporting;
    assert.equal(await bench.isReturned(ONE), true);
  });

  it("is said of this incarnation alone, and of one that is this node's", async () => {
    await bench.grant(ONE);
    await bench.change(ONE, { recalledAt: 1 });
    await bench.hear();
    const seen = (await bench.realStore.get("block", ONE)) ?? assert.fail();
    await bench.realStore.remove("block", seen);
    await bench.realStore.create("block", { ...seen.record, recalledAt: 2 });
    await bench.reporter.look();
    assert.equal(await bench.statusOf(ONE), undefined);
    await bench.hear();
    await bench.change(ONE, { node: "node-b" });
    await bench.reporter.look();
    assert.equal(await bench.statusOf(ONE), undefined);
  });
});
