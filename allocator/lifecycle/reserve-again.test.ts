// SPDX-License-Identifier: Apache-2.0
// Addresses that were somebody's before: cooling, left by a crash, or wanted by two at once.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean, assertSound } from "../../test/support/assert-audit.ts";
import { FailingStore } from "../../test/support/failing-store.ts";
import {
  addrs,
  applicantOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  poolRecord,
  refusalOf,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { resolvePod } from "../demand/pod-allocation.ts";
import type { AllocationRequest } from "./allocation-request.ts";
import { bind } from "./bind.ts";
import { reserve } from "./reserve.ts";
import { giveBack } from "./testing/given-back.ts";

async function take(world: World, allocation: AllocationRequest): Promise<string> {
  const got = granted(await reserve(world.context, allocation, "pod"));
  await world.settle();
  return got.claim.record.addresses.join(",");
}

describe("a cooling address", () => {
  it("goes back to its identity at once", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, podAllocation(world, "licence", entries("10.20.0.70")));
    await giveBack(world, "shop/licence");
    assert.deepEqual(await world.holdings(), {});
    assert.equal((await world.all("reservation"))[0]?.record.releasedAt, world.clock.now());
    assert.equal(await take(world, podAllocation(world, "licence", entries("10.20.0.70"))), "10.20.0.70");
    assert.equal((await world.all("reservation"))[0]?.record.releasedAt, undefined);
    await assertClean(world);
  });

  it("is refused to another identity until its pool's cooldown is over", async () => {
    await using world = await openWorld({
      pools: [{ ...DB_POOL, spec: { ...DB_POOL.spec, cooldown: "10s" } }],
    });
    await take(world, podAllocation(world, "licence", entries("10.20.0.70")));
    await giveBack(world, "shop/licence");
    const other = podAllocation(world, "other", entries("10.20.0.70"));
    const no =
      'ADDRESS_TAKEN: address 10.20.0.70 in pool "db" was given back by shop/licence and is cooling down; free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or this one after 00:00:10 UTC';
    assert.equal(refusalOf(await reserve(world.context, other, "pod")), no);
    world.clock.advance(9_999);
    assert.equal(refusalOf(await reserve(world.context, other, "pod")), no);
    world.clock.advance(1);
    assert.equal(await take(world, other), "10.20.0.70");
    await assertClean(world);
  });

  it("is passed over by whoever takes any", async () => {
    await using world = await openWorld({ pools: [poolRecord("p", "10.9.0.0/30")] });
    const first = await take(world, podAllocation(world, "a", { pools: ["p"] }));
    await giveBack(world, "shop/a");
    assert.notEqual(await take(world, podAllocation(world, "b", { pools: ["p"] })), first);
    assert.match(
      refusalOf(await reserve(world.context, podAllocation(world, "c", { pools: ["p"] }), "pod")),
      /^POOL_EXHAUSTED: /,
    );
  });

  it("of a swap goes back when the swap is taken back", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const address of ["10.20.0.70", "10.20.0.71", "10.20.0.70"]) {
      assert.equal(await take(world, ordinalAllocation(world, "mysql-0", entries(address))), address);
    }
    await assertClean(world);
  });
});

describe("what a crash left", () => {
  it("of its own identity is taken again, once the crash can be told from a reserver at work", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70,fd00:20::7"));
    await assert.rejects(
      reserve(world.another(9, new FailingStore(world.realStore, 3)), allocation, "pod"),
      /killed/,
    );
    await world.settle();
    assert.equal((await world.all("reservation")).length, 2);
    world.clock.advance(60_000);
    assert.equal(await take(world, allocation), "10.20.0.70,fd00:20::7");
    await assertClean(world);
  });

  it("of its own identity just now costs a wait, and no refusal", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    await assert.rejects(
      reserve(world.another(9, new FailingStore(world.realStore, 2)), allocation, "pod"),
      /killed/,
    );
    const began = world.clock.now();
    assert.equal(await take(world, allocation), "10.20.0.70");
    assert.ok(world.clock.now() - began >= 1_500);
    await assertClean(world);
  });

  it("of a claim that a sandbox may have is reserved for it again, and it is given nothing else", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.71")));
    const evidence = async () => ({ fenced: false, holdExpired: false });
    const pod = { name: "mysql-0", uid: "u", node: "node-a", token: "" };
    granted(await bind(world.context, "shop/mysql-0", pod, evidence));
    const lost = (await world.realStore.get("reservation", "10.20.0.71")) ?? assert.fail();
    await world.realStore.remove("reservation", lost);
    await world.settle();
    const edited = ordinalAllocation(world, "mysql-0", entries("10.20.0.80"));
    assert.match(refusalOf(await reserve(world.context, edited, "workload")), /is in use by pod mysql-0/);
    const same = ordinalAllocation(world, "mysql-0", entries("10.20.0.71"));
    assert.equal(await take(world, same), "10.20.0.71");
    await assertSound(world);
  });

  it("of another identity is refused until the garbage collector was there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    await assert.rejects(
      reserve(world.another(9, new FailingStore(world.realStore, 2)), allocation, "pod"),
      /killed/,
    );
    await world.settle();
    const other = podAllocation(world, "other", entries("10.20.0.70"));
    assert.match(
      refusalOf(await reserve(world.context, other, "pod")),
      /^ADDRESS_TAKEN: .* is held by shop\/mysql-0/,
    );
    const collector = world.collector();
    await collector.pass();
    world.clock.advance(30_000);
    assert.equal((await collector.pass()).orphans, 1);
    await world.settle();
    assert.equal(await take(world, other), "10.20.0.70");
    await assertClean(world);
  });

  /** After each write of a swap the process dies; what was begun is finished or forgotten by whoever comes next. */
  it("of a swap leaves one of the two addresses and no defect", async () => {
    for (let at = 1; at <= 6; at++) {
      for (const failure of ["before", "after"] as const) {
        await using world = await openWorld({ pools: [DB_POOL] });
        await take(world, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")));
        const swap = ordinalAllocation(world, "mysql-0", entries("10.20.0.71"));
        const dying = new FailingStore(world.realStore, at, failure);
        await reserve(world.another(9, dying), swap, "pod").catch(() => undefined);
        await world.settle();
        await assertSound(world);
        const held = (await world.holdings())["shop/mysql-0"];
        assert.ok(held === "10.20.0.70" || held === "10.20.0.71", `${at} ${failure}: ${held}`);
        world.clock.advance(5_000);
        assert.equal(await take(world, swap), "10.20.0.71");
        await assertSound(world);
      }
    }
  });
});

describe("a pod that asks for nothing", () => {
  const licence = { kind: "Pod", apiVersion: "v1", name: "licence" };

  it("gets what its claim holds, not what an older claim of the name held", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await take(world, podAllocation(world, "licence", entries("10.20.0.70")));
    const older = (await world.all("claim"))[0]?.record;
    assert.ok(older);
    await giveBack(world, "shop/licence");
    await take(world, podAllocation(world, "licence", { ...entries("10.20.0.71"), retention: { ttlMs: 7 } }));
    const retained = { since: world.clock.now(), because: "deleted" } as const;
    const view = viewOf({
      pools: [DB_POOL],
      claims: [{ ...older, retained, binding: bindingTo("licence", "node-a") }],
      reservations: reservationsOf(older),
    });
    const context = { ...world.another(2), view };
    const input = applicantOf({
      podIdentity: { kind: "named", claim: "licence", identity: licence },
      request: {},
    });
    const resolved = await resolvePod(context, input);
    assert.ok(resolved !== undefined && resolved.kind === "own");
    assert.deepEqual(resolved.requests[0].constraints.addresses, older.addresses);
    const { claim } = granted(await reserve(context, resolved.requests[0], "pod"));
    assert.deepEqual(claim.record.addresses, addrs("10.20.0.71"));
    assert.deepEqual(claim.record.request, { addresses: addrs("10.20.0.71") });
    assert.equal(claim.record.retention.ttlMs, 7);
    await assertClean(world);
  });

  it("gets what a person asks for now of a claim that waits, not what was asked for before", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const waiting = { name: "licence", identity: licence, handMade: true, addresses: [], nonce: "" } as const;
    await world.realStore.create(
      "claim",
      claimRecord({ ...waiting, request: { addresses: addrs("10.20.0.71") } }),
    );
    const view = viewOf({
      pools: [DB_POOL],
      claims: [claimRecord({ ...waiting, request: { pools: ["db"] } })],
    });
    const context = { ...world.another(2), view };
    const input = applicantOf({
      podIdentity: { kind: "named", claim: "licence", identity: licence },
      request: {},
    });
    const resolved = await resolvePod(context, input);
    assert.ok(resolved !== undefined && resolved.kind === "own");
    const { claim } = granted(await reserve(context, resolved.requests[0], "pod"));
    assert.deepEqual(claim.record.addresses, addrs("10.20.0.71"));
    await world.settle();
    await assertClean(world);
  });
});
