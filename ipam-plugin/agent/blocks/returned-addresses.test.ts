// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { noopLogger } from "../../../allocator/base/ports.ts";
import type { Block } from "../../../allocator/model/block.ts";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../../allocator/store/sqlite/store.ts";
import type { Store } from "../../../allocator/store/store.ts";
import { addr, parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { BlockReporter } from "./block-reporter.ts";
import { NodeBlocks } from "./node-blocks.ts";

const FOUR = "10.0.0.4/30";
const LOST = new BerthError("STORE_UNAVAILABLE", "no answer");

let node: NodeBench;
let database: Database;
let realStore: Store;
let reporter: BlockReporter;
/** What the write of a status meets. */
let fault: Error | undefined;
let written: number;

function reporterOfNode(): BlockReporter {
  const { blocks, blockFollower: follower, clock, log } = node.parts;
  const store: Pick<Store, "get" | "reportBlock"> = {
    get: (kind, key) => realStore.get(kind, key),
    reportBlock: async (seen, status) => {
      if (fault !== undefined) throw fault;
      written++;
      return await realStore.reportBlock(seen, status);
    },
  };
  return new BlockReporter({ source: node.blockSource, blocks, follower, store, node: "node-a", clock, log });
}

async function hear(): Promise<void> {
  node.blockSource.records.clear();
  for await (const stored of realStore.list("block")) node.blockSource.records.set(stored.key, stored);
  await node.hearBlocks();
}

async function change(cidr: string, over: Partial<Block>): Promise<void> {
  const seen = (await realStore.get("block", cidr)) ?? assert.fail(cidr);
  assert.equal((await realStore.replace("block", seen, { ...seen.record, ...over })).kind, "replaced");
  await hear();
}

async function grant(cidr: string, more: Partial<Block> = {}): Promise<void> {
  const record = { cidr, pool: "db", node: "node-a", nodeUID: "u", holes: [], granted: true, ...more };
  assert.equal((await realStore.create("block", record)).kind, "created");
  await hear();
}

const returned = async () => (await realStore.get("block", FOUR))?.record.status?.returnedAddresses ?? [];
const attached = () =>
  node.parts.attachments.attached().flatMap(({ result }) => result.addresses.map((one) => one.address));

describe("addresses of a block that are given back one by one", () => {
  beforeEach(async () => {
    node = await NodeBench.open();
    node.ipam = { pools: ["db"] };
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize: { ipv4: 30 } })));
    database = openDatabase(":memory:");
    realStore = openSqliteStore(database, {
      clock: node.clock,
      random: new SeededRandom(1),
      log: noopLogger,
    });
    fault = undefined;
    written = 0;
    reporter = reporterOfNode();
    await grant(FOUR);
  });
  afterEach(async () => {
    await node.close();
    await realStore.close();
    database.close();
  });

  it("are as many as were asked for, and none that a sandbox has", async () => {
    await node.add();
    await change(FOUR, { recalledAddresses: 2 });
    await reporter.look();
    assert.deepEqual(await returned(), ["10.0.0.6", "10.0.0.7"]);
    await change(FOUR, { recalledAddresses: 4 });
    await reporter.look();
    assert.deepEqual(await returned(), ["10.0.0.6", "10.0.0.7", "10.0.0.5"]);
    assert.deepEqual(attached(), ["10.0.0.4"]);
    await hear();
    const before = written;
    await reporter.look();
    assert.equal(written, before, "what the record has is not said again");
  });

  it("are in the journal before they are said, and given by no process from then on", async () => {
    await change(FOUR, { recalledAddresses: 3 });
    fault = LOST;
    await assert.rejects(reporter.look(), LOST);
    assert.deepEqual(
      node.parts.journal.load().blocks.map(({ holes }) => holes),
      [["10.0.0.5/32", "10.0.0.6/31"]],
    );
    await node.restart();
    reporter = reporterOfNode();
    fault = undefined;
    await hear();
    await reporter.look();
    assert.deepEqual((await returned()).toSorted(), ["10.0.0.5", "10.0.0.6", "10.0.0.7"]);
    await node.add();
    assert.deepEqual(attached(), ["10.0.0.4"]);
    assert.equal(node.parts.blocks.get(FOUR)?.space.available, 0);
  });

  it("are given by no version before, which would: it refuses the journal until the node has no block", async () => {
    await change(FOUR, { recalledAddresses: 1 });
    await reporter.look();
    assert.throws(() => node.readAsBefore(), { code: "CONFIG_INVALID" });
    node.blockSource.records.clear();
    await node.hearBlocks();
    node.readAsBefore();
    await grant("10.0.0.9/32", { within: "10.0.0.8/30" });
    assert.throws(() => node.readAsBefore(), { code: "CONFIG_INVALID" });
  });

  it("are given again when they cannot be put down, and are not said", async () => {
    await change(FOUR, { recalledAddresses: 3 });
    node.diskFault = new BerthError("STORE_FULL", "full");
    await assert.rejects(reporter.look(), { code: "STORE_FULL" });
    node.diskFault = undefined;
    assert.equal(written, 0);
    assert.equal(node.parts.blocks.get(FOUR)?.space.available, 4);
  });

  it("are not given by a journal that does not know of them, once it has heard the record", async () => {
    await change(FOUR, { recalledAddresses: 1 });
    await reporter.look();
    await hear();
    assert.equal(node.parts.blocks.get(FOUR)?.space.isFree(7n + 0x0a000000n), false);
    const other = await NodeBench.open();
    other.ipam = { pools: ["db"] };
    other.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize: { ipv4: 30 } })));
    for (const [key, stored] of node.blockSource.records) other.blockSource.records.set(key, stored);
    await other.hearBlocks();
    assert.equal(other.parts.blocks.get(FOUR)?.space.available, 3);
    await other.close();
  });

  it("are not given by a journal that is new, whose watch has not heard of the lost one's word", async () => {
    node.blockSource.statuses = { node: "node-a", store: realStore };
    await node.restart();
    reporter = reporterOfNode();
    await grant("10.0.0.8/30");
    const late = (await realStore.get("block", "10.0.0.8/30")) ?? assert.fail();
    const words = { node: "node-a", used: 0, returnedAddresses: [addr("10.0.0.9")] };
    assert.equal((await realStore.reportBlock(late, words)).kind, "replaced");
    await reporter.look();
    const entry = node.parts.blocks.get("10.0.0.8/30");
    assert.deepEqual([entry?.state, entry?.space.available], ["giving", 3]);
    assert.equal(node.parts.blocks.isFree("db", addr("10.0.0.9"), 0), false);
  });

  it("stay said with every later word about the block, and with that it is given back whole", async () => {
    await change(FOUR, { recalledAddresses: 1 });
    await reporter.look();
    await change(FOUR, { recalledAt: 1 });
    await reporter.look();
    const { status } = (await realStore.get("block", FOUR))?.record ?? {};
    assert.deepEqual(status?.returnedAddresses, ["10.0.0.7"]);
    assert.notEqual(status?.returnedAt, undefined);
  });

  it("are all of it: then the block goes too, unasked, which its node has no use of", async () => {
    await node.add();
    await change(FOUR, { recalledAddresses: 4 });
    for (let n = 0; n < 3; n++) {
      await reporter.look();
      await hear();
    }
    const statusOf = async () => (await realStore.get("block", FOUR))?.record.status;
    assert.equal((await statusOf())?.returnedAt, undefined, "one address is a sandbox's");
    await node.del();
    await node.clock.advance(60_000);
    for (let n = 0; n < 3; n++) {
      await reporter.look();
      await hear();
    }
    assert.equal((await statusOf())?.returnedAddresses?.length, 4);
    assert.notEqual((await statusOf())?.returnedAt, undefined);
  });

  it("come back to the node as a block of their own, and are of that from then on", async () => {
    await change(FOUR, { recalledAddresses: 1 });
    await reporter.look();
    await hear();
    await grant("10.0.0.7/32", { within: FOUR });
    await node.add();
    assert.deepEqual(attached(), ["10.0.0.7"], "the block with the fewest free addresses comes first");
    assert.deepEqual(
      [...node.parts.blocks.all()].map(({ space }) => [space.block.cidr, space.used]),
      [
        [FOUR, 0],
        ["10.0.0.7/32", 1],
      ],
    );
  });
});

describe("a block that lies within another one of the node", () => {
  it("has its address, whichever of them is heard of first, and when either goes", () => {
    const whole = { cidr: FOUR, uid: "w", pool: "db", holes: ["10.0.0.7/32"] };
    const single = { cidr: "10.0.0.7/32", uid: "s", pool: "db", holes: [] };
    for (const order of [
      [whole, single],
      [single, whole],
    ]) {
      const blocks = new NodeBlocks(() => 0);
      for (const block of order) blocks.put(block, "giving");
      blocks.held(addr("10.0.0.7"));
      assert.equal(blocks.get("10.0.0.7/32")?.space.used, 1);
      assert.equal(blocks.isFree("db", addr("10.0.0.7"), 0), false);
      blocks.remove("10.0.0.7/32");
      assert.equal(blocks.isFree("db", addr("10.0.0.7"), 0), false);
      assert.equal(blocks.isFree("db", addr("10.0.0.6"), 0), true);
    }
  });
});
