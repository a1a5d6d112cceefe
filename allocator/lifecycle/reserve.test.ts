// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean, assertSound } from "../../test/support/assert-audit.ts";
import { FailingStore } from "../../test/support/failing-store.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  poolRecord,
  refusalOf,
  reservationRecord,
} from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { dryRun } from "../demand/allocation-dry-run.ts";
import type { Claim } from "../model/claim.ts";
import type { AllocationRequest, Reserved } from "./allocation-request.ts";
import { reserve } from "./reserve.ts";

async function take(world: World, allocation: AllocationRequest): Promise<Reserved> {
  const got = granted(await reserve(world.context, allocation, "pod"));
  await world.settle();
  return got;
}

/** Changes the stored claim as somebody else would. */
async function change(world: World, key: string, over: Partial<Claim>): Promise<void> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  await world.realStore.replace("claim", seen, { ...seen.record, ...over });
  const again = await world.realStore.get("claim", key);
  assert.ok(again);
  if (over.status !== undefined) await world.realStore.report(again, over.status);
  await world.settle();
}

async function counting(pools = [DB_POOL]): Promise<{ world: World; store: FailingStore }> {
  const counters: FailingStore[] = [];
  const wrap = (inner: FailingStore | World["store"]) => {
    const counter = new FailingStore(inner, 0);
    counters.push(counter);
    return counter;
  };
  const world = await openWorld({ pools, wrap });
  const [store] = counters;
  assert.ok(store);
  return { world, store };
}

describe("reserve for a new identity", () => {
  it("makes its claim and its reservations, of one nonce", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = ordinalAllocation(world, "mysql-0", { pools: ["db"] });
    const { claim, made } = await take(world, allocation);
    assert.equal(made, true);
    const { nonce, addresses } = claim.record;
    assert.match(nonce, /^[a-z2-7]{26}$/);
    assert.match(addresses.join(" "), /^10\.20\.0\.\d+ fd00:20::[0-9a-f:]+$/);
    assert.deepEqual(claim.record, {
      namespace: "shop",
      name: "mysql-0",
      identity: allocation.identity,
      request: { pools: ["db"] },
      retention: allocation.retention,
      addresses: addrs("10.20.0.102", "fd00:20::61a7"),
      nonce,
      admittedAt: world.clock.now(),
      status: {},
    });
    const reservations = (await world.all("reservation")).map(({ record }) => record);
    const of = { pool: "db", claim: { namespace: "shop", name: "mysql-0" }, nonce };
    assert.deepEqual(
      reservations,
      addresses.map((address) => ({ address, ...of })),
    );
    await assertClean(world);
  });

  it("costs two writes, and none once its claim stands", async () => {
    const { world, store } = await counting();
    await using _ = world;
    const { claim } = await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    assert.deepEqual([store.writes, store.reads <= 2], [2, true]);
    const before = world.dump();
    const again = await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    assert.deepEqual([store.writes, store.reads <= 2], [2, true]);
    assert.equal(again.claim.revision, claim.revision);
    assert.equal(world.dump(), before);
  });

  it("takes all families or none", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, podAllocation(world, "first", entries("fd00:20::7")));
    const refused = await reserve(
      world.context,
      podAllocation(world, "second", entries("10.20.0.70,fd00:20::7")),
      "pod",
    );
    assert.match(
      refusalOf(refused),
      /^ADDRESS_TAKEN: address fd00:20::7 in pool "db" is held by shop\/first /,
    );
    assert.deepEqual(await world.holdings(), { "shop/first": "fd00:20::7" });
    await assertClean(world);
  });

  it("gives the first family back when the second is exhausted", async () => {
    const pools = [poolRecord("p", ["10.9.0.0/29", "fd09::/127"])];
    await using world = await openWorld({ pools });
    for (const name of ["a", "b"]) await take(world, podAllocation(world, name, { pools: ["p"] }));
    const refused = await reserve(world.context, podAllocation(world, "c", { pools: ["p"] }), "pod");
    assert.equal(
      refusalOf(refused),
      'POOL_EXHAUSTED: no free IPv6 address in pool "p": 2 are held or cooling; add a range, or release claims that are not needed',
    );
    await world.settle();
    assert.equal((await world.all("reservation")).length, 4);
    await assertClean(world);
  });

  it("passes over what the view does not know to be taken", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = podAllocation(world, "a", { pools: ["db"], families: ["IPv4"] });
    const would = granted(await dryRun(world.context, allocation)).addresses[0];
    assert.ok(would);
    await world.realStore.create(
      "claim",
      claimRecord({ name: "hidden", nonce: "h", addresses: [would.address] }),
    );
    await world.realStore.create(
      "reservation",
      reservationRecord(would.address, { claim: { namespace: "shop", name: "hidden" }, nonce: "h" }),
    );
    const { claim } = await take(world, allocation);
    assert.equal(claim.record.addresses.length, 1);
    assert.notEqual(claim.record.addresses[0], would.address);
    await assertClean(world);
  });
});

describe("reserve for an identity that has its claim", () => {
  it("keeps what it holds of what it asks for, whatever else is free", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const first = await take(world, ordinalAllocation(world, "mysql-0", { sticky: true }));
    await world.realStore.create(
      "pool",
      poolRecord("better", ["10.77.0.0/24", "fd77::/64"], { priority: 9 }),
    );
    await world.settle();
    const again = await take(world, ordinalAllocation(world, "mysql-0", { sticky: true }));
    assert.deepEqual(again.claim.record.addresses, first.claim.record.addresses);
  });

  it("swaps at rest when the request changed, and cools what it gave up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const first = await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70,fd00:20::7")));
    const second = await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.71,fd00:20::7")));
    assert.equal(second.claim.record.nonce, first.claim.record.nonce);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71,fd00:20::7" });
    const given = await world.realStore.get("reservation", "10.20.0.70");
    assert.equal(given?.record.releasedAt, world.clock.now());
    await assertClean(world);
  });

  it("swaps after its sandbox was seen to end, and not before", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    await change(world, "shop/mysql-0", { binding: bindingTo("mysql-0", "node-a") });
    const wanted = ordinalAllocation(world, "mysql-0", entries("10.20.0.71"));
    const before = world.dump();
    assert.equal(
      refusalOf(await reserve(world.context, wanted, "pod")),
      "CLAIM_CHANGED: claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.71; it changes when that pod is deleted and created again",
    );
    assert.equal(world.dump(), before);
    const attachment = attachmentOf("mysql-0", { detached: true });
    await change(world, "shop/mysql-0", { status: { attachment } });
    await take(world, wanted);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71" });
    await assertClean(world);
  });

  it("writes down a new owner, request or retention, and that it is wanted again", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    await change(world, "shop/mysql-0", { retained: { since: 5, because: "scaled" } });
    const retention = { whenDeleted: "Retain" as const };
    const wanted = ordinalAllocation(world, "mysql-0", { ...entries("10.20.0.70"), retention }, "u-2");
    const { claim } = await take(world, wanted);
    assert.equal(claim.record.retained, undefined);
    assert.equal(claim.record.identity.uid, "u-2");
    assert.equal(claim.record.retention.whenDeleted, "Retain");
    assert.equal((await take(world, wanted)).claim.revision, claim.revision);
  });

  it("writes nothing of one that is retained for long: whatever binds it to its pod does", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const wanted = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    await take(world, wanted);
    await change(world, "shop/mysql-0", {
      binding: bindingTo("mysql-0", "node-a"),
      retained: { since: world.clock.now(), because: "scaled" },
    });
    const before = world.dump();
    const again = granted(await reserve(world.context, wanted, "workload"));
    assert.deepEqual(again.addresses, addrs("10.20.0.70"));
    assert.equal(world.dump(), before);
    await change(world, "shop/mysql-0", { retained: { since: 5, because: "scaled" } });
    const { claim } = granted(await reserve(world.context, wanted, "workload"));
    assert.equal(claim.record.retained, undefined, "its time would be over before a pod can have come");
  });

  it("notes the admission again when its pod is long in coming", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    const first = await take(world, allocation);
    world.clock.advance(60_000);
    assert.equal((await take(world, allocation)).claim.revision, first.claim.revision);
    world.clock.advance(1);
    const { claim } = await take(world, allocation);
    assert.equal(claim.record.admittedAt, world.clock.now());
  });

  it("never takes a binding away", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const held = (retention: { whenDeleted: "Retain" } | undefined): AllocationRequest => {
      const plain = podAllocation(world, "web", {
        ...entries("10.20.0.70"),
        ...(retention && { retention }),
      });
      return { ...plain, hold: bindingTo("", "", { token: "late", podUID: "" }) };
    };
    await take(world, held(undefined));
    const binding = bindingTo("web-x", "node-a", { token: "early" });
    await change(world, "shop/web", { binding });
    // Admitted before the claim stood, written after a pod was bound, with something else to write.
    const { claim } = await take(world, held({ whenDeleted: "Retain" }));
    assert.deepEqual(claim.record.binding, binding);
    assert.equal(claim.record.retention.whenDeleted, "Retain");
  });

  it("takes its addresses back from a release that stopped half-way", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    await change(world, "shop/mysql-0", { releasing: true });
    const { claim } = await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
    assert.deepEqual(claim.record.addresses, ["10.20.0.70"]);
    assert.equal(claim.record.releasing, undefined);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.70" });
  });
});

describe("reserve for a claim made by hand", () => {
  it("completes it and leaves what its author wrote", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const resolved = claimRecord({
      name: "licence",
      identity: { kind: "Pod", apiVersion: "v1", name: "licence" },
      request: { pools: ["db"], families: ["IPv4"] },
      addresses: [],
      nonce: "",
      handMade: true,
      status: {},
    });
    await world.realStore.create("claim", resolved);
    await world.settle();
    const { claim } = await take(
      world,
      podAllocation(world, "licence", { pools: ["db"], families: ["IPv4"], sticky: true }),
    );
    const { addresses, nonce, admittedAt, ...rest } = claim.record;
    const { addresses: _, nonce: __, ...said } = resolved;
    assert.deepEqual(rest, said);
    assert.deepEqual([addresses.length, nonce.length, admittedAt], [1, 26, world.clock.now()]);
    await assertClean(world);
    const again = podAllocation(world, "licence", { pools: ["db"], families: ["IPv4"], sticky: true });
    assert.equal((await take(world, again)).claim.revision, claim.revision);
  });

  it("leaves it as it is when it cannot be had", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, podAllocation(world, "other", entries("10.20.0.70")));
    const resolved = claimRecord({ name: "licence", addresses: [], nonce: "", handMade: true });
    await world.realStore.create("claim", resolved);
    await world.settle();
    refusalOf(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    assert.deepEqual((await world.realStore.get("claim", "shop/licence"))?.record, resolved);
    await assertSound(world);
  });
});
