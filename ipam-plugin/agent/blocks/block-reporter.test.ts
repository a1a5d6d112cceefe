// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { giveBack } from "../../../allocator/blocks/give-back.ts";
import type { Block } from "../../../allocator/model/block.ts";
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../../allocator/store/sqlite/store.ts";
import type { Store } from "../../../allocator/store/store.ts";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { BlockReporter, EMPTY_MS } from "./block-reporter.ts";

const LOST = new BerthError("STORE_UNAVAILABLE", "no answer");
const ONE = "10.0.0.4/31";

let node: NodeBench;
let database: Database;
let authority: Store;
/** What happens around the write of a status. */
let around: (write: () => ReturnType<Store["reportBlock"]>) => ReturnType<Store["reportBlock"]>;
let written: number;
let reporter: BlockReporter;
/** The agent tells an API server of its blocks, and gives from none before that has heard of it. */
let isProving = false;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    node.ipam = { pools: ["db"] };
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize: { ipv4: 31 } })));
    database = openDatabase(":memory:");
    const random = new SeededRandom(1);
    authority = openSqliteStore(database, { clock: node.clock, random, log: noopLogger });
    around = (write) => write();
    written = 0;
    isProving = false;
    reporter = reporterOfNode();
  });
  afterEach(async () => {
    await node.close();
    await authority.close();
    database.close();
  });
}

function reporterOfNode(): BlockReporter {
  const { blocks, blockFollower: follower, clock, log } = node.parts;
  const store: Pick<Store, "get" | "reportBlock"> = {
    get: (kind, key) => authority.get(kind, key),
    reportBlock: (seen, status) => {
      written++;
      return around(() => authority.reportBlock(seen, status));
    },
  };
  if (isProving) node.blockSource.statuses = { node: "node-a", store };
  return new BlockReporter({ source: node.blockSource, blocks, follower, store, node: "node-a", clock, log });
}

/** Another process on the same journal. */
async function restart(): Promise<void> {
  await node.restart();
  reporter = reporterOfNode();
}

async function grant(...cidrs: readonly string[]): Promise<void> {
  for (const cidr of cidrs) {
    const record = { cidr, pool: "db", node: "node-a", nodeUID: "u", holes: [], granted: true };
    assert.equal((await authority.create("block", record)).kind, "created");
  }
  await hear();
}

async function change(cidr: string, over: Partial<Block>): Promise<void> {
  const seen = (await authority.get("block", cidr)) ?? assert.fail(cidr);
  assert.equal((await authority.replace("block", seen, { ...seen.record, ...over })).kind, "replaced");
}

/** The watch has come as far as the authority. */
async function hear(): Promise<void> {
  node.blockSource.records.clear();
  for await (const stored of authority.list("block")) node.blockSource.records.set(stored.key, stored);
  await node.hearBlocks();
}

const statusOf = async (cidr: string) => (await authority.get("block", cidr))?.record.status;
const isReturned = async (cidr: string) => (await statusOf(cidr))?.returnedAt !== undefined;
const given = () => node.parts.blocks.get(ONE)?.state;

describe("a block that is given back", () => {
  setUp();

  it("at once when it is asked back and nobody uses it, and not before its last sandbox has ended", async () => {
    await grant(ONE);
    await node.add();
    await change(ONE, { recalledAt: 1 });
    await hear();
    await reporter.look();
    assert.deepEqual(await statusOf(ONE), { node: "node-a", used: 1 });
    await node.del();
    await reporter.look();
    assert.equal(await isReturned(ONE), true);
    assert.equal(given(), "returning");
  });

  it("when it was empty for five minutes and there is room for two blocks without it", async () => {
    await grant(ONE, "10.0.0.6/31");
    await reporter.look();
    await node.clock.advance(EMPTY_MS);
    await reporter.look();
    assert.equal(written, 0, "two addresses beside it are too few");
    await grant("10.0.0.8/31");
    await reporter.look();
    await node.clock.advance(EMPTY_MS - 1);
    await reporter.look();
    const returned = async () => {
      const all = [ONE, "10.0.0.6/31", "10.0.0.8/31"].map(isReturned);
      return (await Promise.all(all)).filter((one) => one).length;
    };
    assert.equal(await returned(), 1, "and then the others are needed");
    await node.clock.advance(EMPTY_MS * 3);
    await reporter.look();
    assert.equal(await returned(), 1);
  });

  it("five minutes after its last sandbox, be it one that came and went between two looks", async () => {
    await grant(ONE);
    await reporter.look();
    await node.clock.advance(EMPTY_MS - 1);
    await node.add();
    await node.del();
    await grant("10.0.0.6/31", "10.0.0.8/31");
    await node.clock.advance(1);
    await reporter.look();
    assert.equal(await isReturned(ONE), false);
    await node.clock.advance(EMPTY_MS);
    await reporter.look();
    const returned = await Promise.all([ONE, "10.0.0.6/31", "10.0.0.8/31"].map(isReturned));
    assert.deepEqual(returned, [true, false, false]);
  });

  it("when it was empty for five minutes, the last of its pool too, where nodes have nothing ahead", async () => {
    const blockSize = { ipv4: 31, ahead: 0 };
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize })));
    await grant(ONE);
    await node.add();
    await reporter.look();
    await node.clock.advance(EMPTY_MS);
    await reporter.look();
    assert.equal(await isReturned(ONE), false);
    await node.del();
    await reporter.look();
    await node.clock.advance(EMPTY_MS);
    await reporter.look();
    assert.equal(await isReturned(ONE), true);
  });

  it("in place of one that is in use is said before that one is said to be in use", async () => {
    await grant(ONE);
    await node.add();
    await grant("10.0.0.2/31");
    await change(ONE, { recalledAt: 1 });
    await hear();
    const words: string[] = [];
    around = async (write) => {
      const said = await write();
      if (said.kind === "replaced") words.push(`${said.stored.key} ${said.stored.record.status?.used} used`);
      return said;
    };
    await reporter.look();
    assert.deepEqual(words, ["10.0.0.2/31 0 used", `${ONE} 1 used`]);
    assert.equal(await isReturned("10.0.0.2/31"), true);
  });

  it("is in the journal before it is said", async () => {
    await grant(ONE);
    await change(ONE, { recalledAt: 1 });
    await hear();
    around = async (write) => {
      assert.deepEqual(
        node.parts.journal.load().blocks.map(({ cidr, returningAt }) => [cidr, returningAt > 0]),
        [[ONE, true]],
      );
      return await write();
    };
    await reporter.look();
    assert.equal(written, 1);
  });

  it("is not said when it cannot be put down, and is given from again", async () => {
    await grant(ONE);
    await change(ONE, { recalledAt: 1 });
    await hear();
    node.diskFault = new BerthError("STORE_FULL", "full");
    await assert.rejects(reporter.look(), { code: "STORE_FULL" });
    node.diskFault = undefined;
    assert.deepEqual([written, given()], [0, "giving"]);
  });

  for (const [what, isWritten] of [
    ["before the word has arrived", false],
    ["after it has, and before it was answered", true],
  ] as const) {
    it(`is said until the record has it, by the next process too, if one ends ${what}`, async () => {
      await grant(ONE);
      await change(ONE, { recalledAt: 1 });
      await hear();
      around = async (write) => {
        if (isWritten) await write();
        throw LOST;
      };
      await assert.rejects(reporter.look(), LOST);
      around = (write) => write();
      for (const next of [() => restart(), () => hear(), () => reporter.look(), () => hear()]) {
        await next();
        assert.equal(given(), "returning");
      }
      assert.equal(await isReturned(ONE), true);
      const before = written;
      around = () => assert.fail("once the record has it nobody says it again");
      await reporter.look();
      assert.equal(written, before);
    });
  }

  it("stays so when an older word about its use arrives late", async () => {
    await grant(ONE);
    await node.add();
    const late = Promise.withResolvers<void>();
    around = async (write) => {
      await late.promise;
      return await write();
    };
    const reporting = reporter.look();
    await new Promise(setImmediate);
    await node.del();
    await change(ONE, { recalledAt: 1 });
    await hear();
    around = (write) => write();
    await reporterOfNode().look();
    assert.equal(await isReturned(ONE), true);
    late.resolve();
    await reporting;
    assert.equal(await isReturned(ONE), true);
  });

  it("is said of this incarnation alone, and of one that is this node's", async () => {
    await grant(ONE);
    await change(ONE, { recalledAt: 1 });
    await hear();
    const seen = (await authority.get("block", ONE)) ?? assert.fail();
    await authority.remove("block", seen);
    await authority.create("block", { ...seen.record, recalledAt: 2 });
    await reporter.look();
    assert.equal(await statusOf(ONE), undefined);
    await hear();
    await change(ONE, { node: "node-b" });
    await reporter.look();
    assert.equal(await statusOf(ONE), undefined);
  });
});

describe("a block that is asked back while it is in use", () => {
  setUp();
  const OTHER = "10.0.0.6/31";

  it("stays, an empty one goes in its place, once, and it is said that it is in use", async () => {
    await grant(ONE);
    await node.add();
    await grant(OTHER, "10.0.0.8/31");
    await change(ONE, { recalledAt: 1 });
    await hear();
    for (let look = 0; look < 3; look++) {
      await reporter.look();
      await hear();
    }
    const returned = await Promise.all([ONE, OTHER, "10.0.0.8/31"].map(isReturned));
    assert.deepEqual(returned, [false, true, false]);
    assert.deepEqual(await statusOf(ONE), { node: "node-a", used: 1 });
  });

  it("is given from last, so that it becomes empty", async () => {
    await grant(ONE);
    await node.add({ cid: "a" });
    await change(ONE, { recalledAt: 1 });
    await grant(OTHER);
    const given: string[] = [];
    for (const cid of ["b", "c", "d"]) given.push(...(await node.add({ cid })));
    assert.deepEqual(given, ["10.0.0.6", "10.0.0.7", "10.0.0.5"]);
  });
});

describe("a block that the journal does not know", () => {
  setUp();
  beforeEach(() => {
    isProving = true;
    reporter = reporterOfNode();
  });

  it("is given from when its status is written, and by the next process without that", async () => {
    await grant(ONE);
    assert.equal(given(), "unproven");
    await reporter.look();
    assert.deepEqual([given(), written], ["giving", 1]);
    await restart();
    await hear();
    assert.equal(given(), "giving");
  });

  it("is never given from when an agent with a journal that is lost has given it back, whenever its word arrives", async () => {
    await grant(ONE);
    const seen = (await authority.get("block", ONE)) ?? assert.fail();
    const word = { node: "node-a", used: 0, returnedAt: 1 };
    around = async (write) => {
      assert.equal((await authority.reportBlock(seen, word)).kind, "replaced");
      return await write();
    };
    await reporter.look();
    assert.notEqual(given(), "giving");
    await grant("10.0.0.6/31");
    const other = (await authority.get("block", "10.0.0.6/31")) ?? assert.fail();
    around = (write) => write();
    await reporter.look();
    assert.equal(node.parts.blocks.get("10.0.0.6/31")?.state, "giving");
    assert.equal((await authority.reportBlock(other, word)).kind, "conflict", "it comes too late");
  });

  it("waits until the Node object that it was made for counts as fenced, if it is another one than this node's", async () => {
    node.blockSource.own = { uid: "made again", seenForMs: NODE_GRACE_MS - 1, fenced: false };
    await grant(ONE);
    await reporter.look();
    assert.deepEqual([given(), written], ["unproven", 0]);
    node.blockSource.own = { uid: "made again", seenForMs: NODE_GRACE_MS, fenced: false };
    await reporter.look();
    assert.equal(given(), "giving");
    node.blockSource.own = undefined;
    await grant("10.0.0.6/31");
    await reporter.look();
    assert.equal(
      node.parts.blocks.get("10.0.0.6/31")?.state,
      "unproven",
      "it is not known which this node's is",
    );
  });
});

describe("a block of a node that was fenced", () => {
  setUp();
  beforeEach(async () => {
    isProving = true;
    reporter = reporterOfNode();
    await grant(ONE);
    await reporter.look();
    assert.deepEqual([given(), written], ["giving", 1]);
  });

  const fence = async (fenced: boolean) => {
    node.blockSource.own = { uid: "u", seenForMs: 0, fenced };
    await hear();
  };

  /** A controller that has seen the node fenced takes the block, as it was then. */
  const fencer = async () => {
    const seen = (await authority.get("block", ONE)) ?? assert.fail();
    return () => giveBack({ store: authority, clock: node.clock }, seen, { kind: "fenced", node: "node-a" });
  };

  it("is proven anew in each boot, so that a controller which saw the node fenced while it was off comes too late", async () => {
    const takes = await fencer();
    node.reboot();
    await restart();
    await hear();
    assert.equal(given(), "unproven");
    await reporter.look();
    assert.deepEqual([given(), written], ["giving", 2]);
    assert.equal(await takes(), "changed");
  });

  it("is not given from when that controller was first", async () => {
    const takes = await fencer();
    node.reboot();
    await restart();
    await hear();
    around = async (write) => {
      assert.equal(await takes(), "cooling");
      return await write();
    };
    await reporter.look();
    await hear();
    assert.equal(given(), undefined);
  });

  it("is not given from while it is fenced, and proven anew after that, also by the next process", async () => {
    await fence(true);
    await reporter.look();
    assert.deepEqual([given(), written], ["unproven", 1]);
    await fence(false);
    await restart();
    await hear();
    assert.equal(given(), "unproven", "the journal says so");
    const takes = await fencer();
    await reporter.look();
    assert.deepEqual([given(), written], ["giving", 2]);
    assert.equal(await takes(), "changed");
    await restart();
    await hear();
    assert.equal(given(), "giving");
  });

  it("is not proven by a write that the fence overtook", async () => {
    await fence(true);
    await fence(false);
    around = async (write) => {
      const result = await write();
      await fence(true);
      return result;
    };
    await reporter.look();
    assert.equal(given(), "unproven");
  });

  it("goes on when the kubelet has registered again after the boot: the journal says that it is this machine's", async () => {
    node.reboot();
    await restart();
    node.blockSource.own = { uid: "made again", seenForMs: 0, fenced: false };
    await hear();
    await reporter.look();
    assert.equal(given(), "giving");
  });
});

describe("what is said of a block's use", () => {
  setUp();

  it("is said once in 30 s at most, and only when it has changed", async () => {
    await grant(ONE);
    await reporter.look();
    assert.equal(written, 0);
    await node.add({ cid: "a" });
    await reporter.look();
    await node.add({ cid: "b" });
    await reporter.look();
    await hear();
    await reporter.look();
    assert.deepEqual([written, (await statusOf(ONE))?.used], [1, 1]);
    await node.clock.advance(30_000);
    await reporter.look();
    await hear();
    await node.clock.advance(30_000);
    await reporter.look();
    assert.deepEqual([written, (await statusOf(ONE))?.used], [2, 2]);
  });

  it("is said within 2 s where fewer are used and something of the pool is asked back", async () => {
    await grant(ONE, "10.0.0.8/31");
    for (const cid of ["a", "b", "c", "d"]) await node.add({ cid });
    await reporter.look();
    await hear();
    assert.equal(written, 2);
    const writes = async () => {
      const before = written;
      await node.clock.advance(2_000);
      await reporter.look();
      await hear();
      return written - before;
    };
    await node.del({ cid: "a" });
    assert.equal(await writes(), 0, "nobody lacks any");
    await change(ONE, { recalledAt: 1 });
    await hear();
    assert.equal(await writes(), 1);
    await node.del({ cid: "b" });
    assert.ok((await writes()) > 0);
  });

  it("is said of a few blocks in one look", async () => {
    const cidrs = Array.from({ length: 6 }, (_, i) => `10.0.0.${i * 2}/31`);
    await grant(...cidrs);
    for (let i = 0; i < 12; i++) await node.add({ cid: `c${i}` });
    for (const expected of [4, 6, 6]) {
      await reporter.look();
      assert.equal(written, expected);
    }
  });
});
