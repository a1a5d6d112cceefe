// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { altered } from "../../test/simulation/altered.ts";
import { addr, reservationRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { audit } from "../gc/audit.ts";
import { blockAgainst } from "../lifecycle/block-conflict.ts";
import { type Block, type BlockStatus, returnedOf } from "../model/block.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { BlockDistributor } from "./distributor.ts";

/** One block of four, which is all that the pool has. */
const POOL: PoolRecord = {
  name: "web",
  spec: {
    ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.4", to: "10.0.0.7" }],
    blockSize: { ipv4: 30 },
    cooldown: "30s",
  },
};
const WHOLE = "10.0.0.4/30";

let world: World;
let needs: Record<string, number>;
let blocks: BlockDistributor;

/** A controller of nodes that need so many addresses. */
function open(first: Record<string, number>): void {
  needs = first;
  const nodesFor = () =>
    Object.entries(needs).map(([node, pods]) => ({ node, nodeUID: `uid-of-${node}`, pods }));
  const context = { ...world.context, view: world.cache };
  blocks = new BlockDistributor(context, { nodesFor, evidence: async () => undefined });
}

/** Passes of the controller, each of which is heard of. */
async function passes(count = 2): Promise<string> {
  let last: Awaited<ReturnType<BlockDistributor["pass"]>> = [];
  for (let n = 0; n < count; n++) {
    last = await blocks.pass();
    await world.settle();
  }
  return last.flatMap(({ short }) => short.map(({ node, missing }) => `${node} lacks ${missing}`)).join();
}

async function blockOf(cidr: string): Promise<Block | undefined> {
  return (await world.realStore.get("block", cidr))?.record;
}

/** What the agent of the block's node says. */
async function says(cidr: string, status: Omit<BlockStatus, "node">): Promise<void> {
  const seen = (await world.realStore.get("block", cidr)) ?? assert.fail(cidr);
  const written = await world.realStore.reportBlock(seen, { node: seen.record.node, ...status });
  assert.equal(written.kind, "replaced");
  await world.settle();
}

async function owners(): Promise<string> {
  const all = await world.all("block");
  return all
    .map(({ key, record }) => `${key} ${record.releasedAt === undefined ? record.node : "cools"}`)
    .join(", ");
}

async function findings(): Promise<readonly string[]> {
  const [claims, reservations, all] = [
    await world.all("claim"),
    await world.all("reservation"),
    await world.all("block"),
  ];
  const input = {
    pools: [...world.cache.pools()],
    claims: claims.map(({ record }) => record),
    reservations: reservations.map(({ record }) => record),
    blocks: all.map(({ record }) => record),
    attachments: [],
  };
  return audit(input).flatMap(({ severity, message }) => (severity === "defect" ? [message] : []));
}

describe("a block that is partly used, and another node whose pods lack addresses", () => {
  beforeEach(async () => {
    world = await openWorld({ pools: [POOL], clock: new ManualClock() });
    open({ "node-a": 2 });
    await passes();
    assert.equal(await owners(), `${WHOLE} node-a`);
    await says(WHOLE, { used: 2 });
  });
  afterEach(async () => {
    assert.deepEqual(await findings(), []);
    await world[Symbol.asyncDispose]();
  });

  it("its owner is asked for as many as are lacked, and no more than it can do without", async () => {
    needs["node-b"] = 1;
    assert.equal(await passes(), "node-b lacks 1");
    assert.equal((await blockOf(WHOLE))?.recalledAddresses, 1);
    needs["node-b"] = 5;
    await passes();
    assert.equal((await blockOf(WHOLE))?.recalledAddresses, 2);
  });

  it("every address of it is had by the other node, down to the last", async () => {
    needs["node-b"] = 2;
    await passes();
    await says(WHOLE, { used: 2, returnedAddresses: [addr("10.0.0.7"), addr("10.0.0.6")] });
    assert.equal(await passes(), "");
    assert.equal(await owners(), `${WHOLE} node-a, 10.0.0.6/32 node-b, 10.0.0.7/32 node-b`);
    needs["node-b"] = 3;
    assert.equal(await passes(), "node-b lacks 1");
    // what is given back is had by the next node, without a word to the owner of the block
    needs = { "node-a": 2, "node-b": 1, "node-c": 1 };
    await says("10.0.0.7/32", { used: 0, returnedAt: world.clock.now() });
    await passes(1);
    world.clock.advance(30_000);
    assert.equal(await passes(3), "");
    assert.equal(await owners(), `${WHOLE} node-a, 10.0.0.6/32 node-b, 10.0.0.7/32 node-c`);
  });

  it("no owner is asked any more when nobody lacks any", async () => {
    needs["node-b"] = 1;
    await passes();
    delete needs["node-b"];
    await passes();
    const block = await blockOf(WHOLE);
    assert.equal(block?.recalledAddresses, 0);
    assert.deepEqual(block && returnedOf(block), []);
  });

  it("it stays when its owner has given it back, all of it may be had, and it goes after the last of its addresses", async () => {
    needs["node-b"] = 1;
    await passes();
    await says(WHOLE, { used: 2, returnedAddresses: [addr("10.0.0.7")] });
    await passes();
    await says(WHOLE, { used: 0, returnedAddresses: [addr("10.0.0.7")], returnedAt: world.clock.now() });
    needs = { "node-b": 1 };
    await passes(1);
    world.clock.advance(30_000);
    await passes(3);
    assert.equal((await blockOf(WHOLE))?.division, "all");
    needs = { "node-b": 1, "node-c": 2 };
    assert.equal(await passes(), "");
    assert.equal(
      await owners(),
      `${WHOLE} cools, 10.0.0.4/32 node-c, 10.0.0.5/32 node-c, 10.0.0.7/32 node-b`,
    );
    needs = {};
    for (const cidr of ["10.0.0.4/32", "10.0.0.5/32", "10.0.0.7/32"])
      await says(cidr, { used: 0, returnedAt: world.clock.now() });
    await passes(1);
    world.clock.advance(30_000);
    await passes(4);
    assert.equal(await owners(), "");
  });

  it("a hole of it that nobody has reserved any more is had too, and one that is reserved is not", async () => {
    needs = { "node-b": 1 };
    const holed = (await world.realStore.get("block", WHOLE)) ?? assert.fail();
    const holes = ["10.0.0.4/32", "10.0.0.5/32"];
    await world.realStore.replace("block", holed, { ...holed.record, holes });
    await world.realStore.create("reservation", reservationRecord("10.0.0.4", { pool: "web" }));
    await says(WHOLE, { used: 2 });
    assert.equal(await passes(), "");
    assert.equal(await owners(), `${WHOLE} node-a, 10.0.0.5/32 node-b`);
    const against = await blockAgainst(world.context, addr("10.0.0.5"));
    assert.equal(against?.node, "node-b", "who wants it as a fixed address finds the node that has it");
    assert.equal(await blockAgainst(world.context, addr("10.0.0.4")), undefined);
  });
});

describe("an owner that is asked for single addresses and does not answer", () => {
  it("keeps nobody from being asked, and is waited for no longer", async () => {
    const ranges = [{ cidr: "10.0.0.0/24", from: "10.0.0.4", to: "10.0.0.11" }];
    const pool = { ...POOL, spec: { ...POOL.spec, ranges } };
    await using own = await openWorld({ pools: [pool], clock: new ManualClock() });
    const pods = new Map([
      ["node-a", 1],
      ["node-c", 2],
    ]);
    const nodesFor = () => [...pods].map(([node, count]) => ({ node, nodeUID: node, pods: count }));
    const context = { ...own.context, view: own.cache };
    const giver = new BlockDistributor(context, { nodesFor, evidence: async () => undefined });
    const asked = async () => {
      await giver.pass();
      await own.settle();
      const all = await own.all("block");
      return all.map(({ record }) => `${record.node} ${record.recalledAddresses ?? 0}`).sort();
    };
    await asked();
    for (const seen of await own.all("block")) {
      const { node } = seen.record;
      await own.realStore.reportBlock(seen, { node, used: pods.get(node) ?? 0 });
    }
    await own.settle();
    pods.set("node-b", 1);
    for (let pass = 0; pass < 3; pass++) assert.deepEqual(await asked(), ["node-a 1", "node-c 0"]);
    own.clock.advance(20_000);
    assert.deepEqual(await asked(), ["node-a 1", "node-c 1"]);
  });
});

describe("single addresses for a node that is refused them", () => {
  it("go to the other nodes that lack some, in the next pass at the latest, and so does what is given back meanwhile", async () => {
    world = await openWorld({
      ...{ pools: [POOL], clock: new ManualClock() },
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind === "block" && "node" in record && record.node === "node-b")
              throw new BerthError("WRITE_REFUSED", "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    open({ "node-a": 1 });
    await passes();
    Object.assign(needs, { "node-b": 1, "node-c": 1 });
    await passes();
    await says(WHOLE, { used: 1, returnedAddresses: [addr("10.0.0.7")] });
    await passes();
    assert.equal(await owners(), `${WHOLE} node-a, 10.0.0.7/32 node-c`);
    assert.deepEqual([...blocks.faults], [["web", "a policy refuses it"]]);
    needs["node-d"] = 1;
    await passes();
    assert.equal((await blockOf(WHOLE))?.recalledAddresses, 3);
    await world[Symbol.asyncDispose]();
  });
});
