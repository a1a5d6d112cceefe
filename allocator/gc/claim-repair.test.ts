// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import {
  addr,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  NOW,
  reservationRecord,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Claim } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";
import { repairClaim } from "./claim-repair.ts";
import { findBroken } from "./orphans.ts";

const POOLS = [DB_POOL];
const BOTH = [addr("10.20.0.70"), addr("fd00:20::7")];
const HELD = claimRecord({ addresses: BOTH, nonce: "mine" });

/** The claim with some of its reservations, and with others. */
async function put(
  world: World,
  claim: Claim,
  ...reservations: readonly Reservation[]
): Promise<Stored<"claim">> {
  for (const reservation of reservations) await world.realStore.create("reservation", reservation);
  const created = await world.realStore.create("claim", claim);
  await world.settle();
  return created.stored;
}

async function nonces(world: World): Promise<string[]> {
  return (await world.all("reservation")).map(
    ({ key, record }) =>
      `${key} ${record.nonce}${record.releasedAt === undefined ? "" : " cooling"}${record.marked === true ? " marked" : ""}`,
  );
}

describe("repairClaim", () => {
  it("writes nothing for a claim that has what it lists", async () => {
    await using world = await openWorld({ pools: POOLS });
    const stored = await put(world, HELD, ...reservationsOf(HELD));
    const before = world.dump();
    assert.equal(await repairClaim(world.context, stored), "intact");
    assert.equal(world.dump(), before);
  });

  it("writes nothing for a claim that is gone, waits, or is on its way out", async () => {
    await using world = await openWorld({ pools: POOLS });
    const stored = await put(world, { ...HELD, releasing: true });
    const before = world.dump();
    assert.equal(await repairClaim(world.context, stored), "intact");
    assert.equal(await repairClaim(world.context, { ...stored, key: "shop/nobody" }), "intact");
    assert.equal(world.dump(), before);
  });

  it("reserves again what is free", async () => {
    await using world = await openWorld({ pools: POOLS });
    const stored = await put(world, HELD, ...reservationsOf(HELD).slice(1));
    assert.equal(await repairClaim(world.context, stored), "repaired");
    assert.deepEqual(await nonces(world), ["10.20.0.70 mine", "fd00:20::7 mine"]);
    await assertClean(world);
  });

  it("writes the claim before, which the attempt that made it may be about to undo", async () => {
    let undone: (() => Promise<{ readonly kind: string }>) | undefined;
    const said: string[] = [];
    await using world = await openWorld({
      pools: POOLS,
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            const result = await store.create(kind, record);
            if (kind === "reservation" && undone !== undefined) said.push((await undone()).kind);
            return result;
          },
        }),
    });
    const stored = await put(world, HELD);
    undone = () => world.realStore.remove("claim", stored);
    assert.equal(await repairClaim(world.context, stored), "repaired");
    assert.deepEqual(said, ["conflict", "conflict"]);
    const revision = Number((await world.realStore.get("claim", stored.key))?.revision);
    assert.equal(revision, Number(stored.revision) + 1);
  });

  it("takes back what is cooling, and the mark from what is marked", async () => {
    await using world = await openWorld({ pools: POOLS });
    const [ipv4, ipv6] = reservationsOf(HELD);
    assert.ok(ipv4 && ipv6);
    const stored = await put(
      world,
      HELD,
      { ...ipv4, releasedAt: world.clock.now() },
      { ...ipv6, marked: true },
    );
    assert.equal(await repairClaim(world.context, stored), "repaired");
    assert.deepEqual(await nonces(world), ["10.20.0.70 mine", "fd00:20::7 mine"]);
  });

  it("gives the claim up when another identity has an address by now", async () => {
    await using world = await openWorld({ pools: POOLS });
    const other = claimRecord({ name: "other", addresses: [addr("10.20.0.70")], nonce: "theirs" });
    const [, ipv6] = reservationsOf(HELD);
    assert.ok(ipv6);
    await put(world, other, ...reservationsOf(other));
    const stored = await put(world, HELD, ipv6);
    assert.equal(await repairClaim(world.context, stored), "abandoned");
    assert.equal(await world.realStore.get("claim", stored.key), undefined);
    assert.deepEqual(await nonces(world), ["10.20.0.70 theirs", "fd00:20::7 mine cooling"]);
    await world.settle();
    await assertClean(world);
  });

  it("lets a claim that a person made wait again", async () => {
    await using world = await openWorld({ pools: POOLS });
    const other = claimRecord({ name: "other", addresses: BOTH, nonce: "theirs" });
    await put(world, other, ...reservationsOf(other));
    const stored = await put(world, { ...HELD, handMade: true });
    assert.equal(await repairClaim(world.context, stored), "abandoned");
    const left = (await world.realStore.get("claim", stored.key))?.record;
    const { admittedAt } = left ?? {};
    assert.deepEqual(left, { ...HELD, handMade: true, addresses: [], nonce: "", admittedAt });
  });

  it("leaves a claim alone that a sandbox may be using, or whose pool is gone", async () => {
    await using world = await openWorld({ pools: POOLS });
    const other = claimRecord({ name: "other", addresses: BOTH, nonce: "theirs" });
    await put(world, other, ...reservationsOf(other));
    const inUse = await put(world, { ...HELD, binding: bindingTo("mysql-0", "node-a") });
    const elsewhere = await put(world, { ...HELD, name: "elsewhere", addresses: [addr("192.0.2.1")] });
    const before = world.dump();
    assert.equal(await repairClaim(world.context, inUse), "retry");
    assert.equal(await repairClaim(world.context, elsewhere), "retry");
    assert.equal(world.dump(), before);
  });

  it("is what the garbage collector does with a claim that lacked a reservation for 30 s", async () => {
    await using world = await openWorld({ pools: POOLS });
    await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql", { replicas: 1 }))));
    await put(world, HELD);
    const collector = world.collector();
    await collector.pass();
    world.clock.advance(29_999);
    await collector.pass();
    assert.deepEqual(await nonces(world), []);
    world.clock.advance(1);
    await collector.pass();
    assert.deepEqual(await nonces(world), ["10.20.0.70 mine", "fd00:20::7 mine"]);
    await world.settle();
    await assertClean(world);
  });
});

describe("findBroken", () => {
  const [ipv4, ipv6] = BOTH as [(typeof BOTH)[0], (typeof BOTH)[0]];
  const mine = { claim: { namespace: "shop", name: HELD.name }, nonce: "mine" };
  const rows: readonly (readonly [string, Claim, readonly Reservation[], number])[] = [
    ["has both", HELD, reservationsOf(HELD), 0],
    ["lacks one", HELD, [reservationRecord(ipv6, mine)], 1],
    [
      "has one that cools",
      HELD,
      [reservationRecord(ipv4, { ...mine, releasedAt: NOW }), reservationRecord(ipv6, mine)],
      1,
    ],
    [
      "has one that is marked",
      HELD,
      [reservationRecord(ipv4, { ...mine, marked: true }), reservationRecord(ipv6, mine)],
      1,
    ],
    ["has those of another nonce", HELD, reservationsOf({ ...HELD, nonce: "other" }), 1],
    ["waits", { ...HELD, addresses: [], nonce: "" }, [], 0],
    ["is on its way out", { ...HELD, releasing: true }, [], 0],
  ];
  for (const [title, claim, reservations, broken] of rows) {
    it(`${broken === 0 ? "passes over" : "looks at"} a claim that ${title}`, () => {
      const view = viewOf({ pools: POOLS, claims: [claim], reservations });
      const first = findBroken(view, new Map(), NOW);
      assert.equal(first.broken.length, 0);
      assert.equal(findBroken(view, first.firstSeen, NOW + 29_999).broken.length, 0);
      assert.equal(findBroken(view, first.firstSeen, NOW + 30_000).broken.length, broken);
    });
  }

  it("begins anew when the claim has changed", () => {
    const view = viewOf({ pools: POOLS, claims: [HELD], reservations: [] });
    const first = findBroken(view, new Map(), NOW);
    const changed = viewOf({ pools: POOLS, claims: [{ ...HELD, admittedAt: NOW }], reservations: [] });
    assert.deepEqual(findBroken(changed, first.firstSeen, NOW + 30_000).broken, []);
  });
});
