// SPDX-License-Identifier: Apache-2.0
// A review may be forged, and its pod may never be: what it does to a claim that is there (ADR 0007).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, bindingTo, DB_POOL, granted, NOW, poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import { HOLD_TIMEOUT_MS } from "../lifecycle/hold.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { Claim } from "../model/claim.ts";
import { settleAnswer } from "./admitted-pod.ts";
import { describeDryRun, dryRun } from "./allocation-dry-run.ts";

async function claimOf(world: World, name: string): Promise<Claim> {
  return (await world.realStore.get("claim", `shop/${name}`))?.record ?? assert.fail("no claim");
}

async function holderOf(world: World, address: string): Promise<string> {
  const found = await world.realStore.get("reservation", address);
  return found === undefined || found.record.releasedAt !== undefined ? "nobody" : found.record.claim.name;
}

/** Passes of the garbage collector for as long as an orphan may live. */
async function collect(world: World, ms = 90_000): Promise<void> {
  const collector = world.collector();
  for (let passed = 0; passed <= ms; passed += 10_000) {
    await collector.pass();
    await world.settle();
    world.clock.advance(10_000);
  }
}

describe("a review for a claim that is there", () => {
  it("changes nothing of it: owner, retention, request, addresses", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"));
    await world.settle();
    const before = await claimOf(world, "mysql-0");
    const forged = podAllocation(world, "mysql-0", {
      ...entries("10.20.0.80"),
      retention: { whenDeleted: "Release", whenScaled: "Release" },
    });
    const reported = granted(await reserve(world.context, forged, "nothing"));
    assert.deepEqual([reported.addresses, reported.besideClaim], [addrs("10.20.0.80"), addrs("10.20.0.80")]);
    assert.deepEqual(await claimOf(world, "mysql-0"), before);
    assert.deepEqual(
      [await holderOf(world, "10.20.0.70"), await holderOf(world, "10.20.0.80")],
      ["mysql-0", "mysql-0"],
    );
  });

  it("holds another address for its pod no longer than an orphan lives, however often it is sent", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(
      await reserve(
        world.context,
        podAllocation(world, "victim", { ...entries("10.20.0.70"), sticky: true }),
        "pod",
      ),
    );
    const other = podAllocation(world, "victim", entries("10.20.0.80"));
    const collector = world.collector();
    let freed = false;
    for (let n = 0; n < 9 && !freed; n++) {
      const got = granted(await reserve(world.context, other, "nothing"));
      assert.equal(got.besideClaim.length, n === 0 ? 1 : 0);
      await world.settle();
      await collector.pass();
      freed = (await world.realStore.get("reservation", "10.20.0.80")) === undefined;
      world.clock.advance(10_000);
    }
    assert.ok(freed, "asking again made it last");
    await world.settle();
    assert.equal((await claimOf(world, "victim")).addresses.join(), "10.20.0.70");
    await assertClean(world);
  });

  it("holds one address beside it, however often a pod that never comes asks by pool", async () => {
    const other = poolRecord("web", ["10.30.0.0/28"], { limits: { perNamespace: 2 } });
    await using world = await openWorld({ pools: [DB_POOL, other] });
    granted(await reserve(world.context, podAllocation(world, "keep", entries("10.20.0.70")), "pod"));
    await world.settle();
    const next = podAllocation(world, "keep", { pools: ["web"] });
    const first = granted(await reserve(world.context, next, "nothing"));
    assert.equal(first.besideClaim.length, 1);
    for (let n = 0; n < 4; n++) {
      await world.settle();
      const again = granted(await reserve(world.context, next, "nothing"));
      assert.deepEqual([again.addresses, again.besideClaim], [first.addresses, []]);
    }
    assert.equal((await claimOf(world, "keep")).addresses.join(), "10.20.0.70");
    await collect(world);
    await assertClean(world);
  });

  it("is foretold the address that is held beside it, and by a dry run that takes none", async () => {
    await using world = await openWorld({
      pools: [DB_POOL, poolRecord("web", "10.70.0.0/28", { limits: { perNamespace: 3 } })],
    });
    granted(await reserve(world.context, podAllocation(world, "victim", entries("10.20.0.70")), "pod"));
    await world.settle();
    const byPool = podAllocation(world, "victim", { pools: ["web"] });
    const reported = granted(await reserve(world.context, byPool, "nothing"));
    await world.settle();
    const before = world.dump();
    const would = await dryRun(world.context, byPool);
    assert.equal(world.dump(), before);
    assert.ok(!isRefusal(would));
    assert.deepEqual(
      would.addresses.map(({ address }) => address),
      reported.addresses,
    );
    assert.match(describeDryRun("pod victim", would), /^pod victim would get 10\.70\.0\.\d+ from pool web$/);
    assert.deepEqual(granted(await reserve(world.context, byPool, "nothing")).addresses, reported.addresses);
  });

  it("moves it once the pod is there: what it had cools", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    await world.settle();
    const next = podAllocation(world, "licence", entries("10.20.0.80"));
    const { addresses, assigned: words } = granted(await reserve(world.context, next, "nothing"));
    await world.settle();
    const answer = { claim: "licence", token: "", addresses, words };
    granted((await settleAnswer(world.context, next, answer)) ?? assert.fail("another's"));
    await world.settle();
    assert.equal((await claimOf(world, "licence")).addresses.join(), "10.20.0.80");
    assert.equal(await holderOf(world, "10.20.0.70"), "nobody");
    await assertClean(world);
  });

  it("leaves two changes of one claim to the pod that comes", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    const real = podAllocation(world, "licence", entries("10.20.0.80"));
    granted(await reserve(world.context, real, "nothing"));
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.90")), "nothing"));
    await world.settle();
    granted(
      (await settleAnswer(world.context, real, {
        claim: "licence",
        token: "",
        addresses: addrs("10.20.0.80"),
        words: ["10.20.0.80"],
      })) ?? assert.fail("another's"),
    );
    await world.settle();
    await collect(world);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.80" });
    await assertClean(world);
  });

  it("leaves an address that cools as it is, for as long as its pool says", async () => {
    const pool = poolRecord("db", "10.20.0.0/24", { cooldown: "10m" });
    await using world = await openWorld({ pools: [pool] });
    const first = podAllocation(world, "licence", entries("10.20.0.70"));
    granted(await reserve(world.context, first, "pod"));
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.80")), "pod"));
    await world.settle();
    const { besideClaim: held, addresses } = granted(await reserve(world.context, first, "nothing"));
    assert.deepEqual([held, addresses], [[], addrs("10.20.0.70")]);
    await collect(world);
    assert.equal((await world.realStore.get("reservation", "10.20.0.70"))?.record.releasedAt, NOW);
  });

  it("gives it more time once, and no more", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const allocation = podAllocation(world, "ghost", entries("10.20.0.70"));
    const made = granted(await reserve(world.context, allocation, "nothing"));
    assert.deepEqual([made.made, made.waits], [true, true]);
    const waits: boolean[] = [];
    const collector = world.collector();
    for (let ms = 0; ms <= 2 * HOLD_TIMEOUT_MS + 20_000; ms += 10_000) {
      await world.settle();
      await collector.pass();
      if ((await world.realStore.get("claim", "shop/ghost")) === undefined) break;
      if (granted(await reserve(world.context, allocation, "nothing")).waits) waits.push(true);
      world.clock.advance(10_000);
    }
    assert.ok(waits.length <= 1);
    assert.equal(await world.realStore.get("claim", "shop/ghost"), undefined);
  });
});

describe("a workload that is there", () => {
  it("does not move a claim under a pod that may be there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"));
    await world.settle();
    const edited = ordinalAllocation(world, "mysql-0", entries("10.20.0.80"));
    const answer = await reserve(world.context, edited, "workload");
    assert.equal(
      answer.kind === "refused" ? `${answer.code}: ${answer.message}` : "moved",
      "CLAIM_CHANGED: claim shop/mysql-0 holds 10.20.0.70, and the request is now for 10.20.0.80; it changes when its pod is created, or deleted and created again",
    );
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.70" });
  });

  it("holds no claim for a next pod by changing it after its pod", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { claim } = granted(
      await reserve(world.context, ordinalAllocation(world, "mysql-0", entries("10.20.0.70")), "pod"),
    );
    const binding = bindingTo("mysql-0", "node-a", { since: world.clock.now() });
    await world.realStore.replace("claim", claim, { ...claim.record, binding });
    await world.settle();
    const before = await claimOf(world, "mysql-0");
    world.clock.advance(1_000);
    const edited = ordinalAllocation(world, "mysql-0", {
      ...entries("10.20.0.70"),
      retention: { whenDeleted: "Release", whenScaled: "Release" },
    });
    granted(await reserve(world.context, edited, "workload"));
    const { admittedAt, retention } = await claimOf(world, "mysql-0");
    assert.equal(admittedAt, before.admittedAt);
    assert.equal(retention.whenScaled, "Release");
  });
});
