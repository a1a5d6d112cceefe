// SPDX-License-Identifier: Apache-2.0
// A claim whose attempt lost a reservation and is about to undo it, and others of the same identity who complete it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  reservationRecord,
} from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Stored } from "../store/store.ts";
import type { Seen } from "./allocation-request.ts";
import { reserve } from "./reserve.ts";
import { undo } from "./write-claim.ts";

const BOTH = "10.20.0.70,fd00:20::7";

/** The claim that an attempt has made, and one of its two reservations: the other one was collected meanwhile. */
async function halfMade(world: World): Promise<Stored<"claim">> {
  const { key, identity, request, retention } = podAllocation(world, "licence", entries(BOTH));
  const record = claimRecord({ ...key, identity, request, retention, nonce: "first" });
  const reservation = reservationRecord("fd00:20::7", { claim: key, nonce: "first" });
  await world.realStore.create("reservation", reservation);
  const made = { ...record, addresses: addrs("10.20.0.70", "fd00:20::7"), admittedAt: world.clock.now() };
  const { stored } = await world.realStore.create("claim", made);
  await world.settle();
  return stored;
}

describe("a claim that lacks a reservation", () => {
  for (const seen of ["nothing", "pod", "workload"] as const satisfies readonly Seen[]) {
    it(`is not undone any more once it was reserved again by whoever had seen: ${seen}`, async () => {
      let attempted: (() => Promise<void>) | undefined;
      await using world = await openWorld({
        pools: [DB_POOL],
        wrap: (store) =>
          altered(store, {
            create: async (kind, record) => {
              const result = await store.create(kind, record);
              if (kind === "reservation" && attempted !== undefined) await attempted();
              return result;
            },
          }),
      });
      const made = await halfMade(world);
      attempted = () => undo({ ...world.context, store: world.realStore }, made, undefined);
      const got = granted(await reserve(world.context, podAllocation(world, "licence", entries(BOTH)), seen));
      await world.settle();
      assert.deepEqual(got.addresses, made.record.addresses);
      assert.equal((await world.realStore.get("claim", made.key))?.uid, made.uid);
      await assertClean(world);
    });
  }

  it("is left to whoever changed it meanwhile", async () => {
    let attempted: (() => Promise<unknown>) | undefined;
    await using world = await openWorld({
      pools: [DB_POOL],
      wrap: (store) =>
        altered(store, {
          replace: async (kind, seen, next) => {
            await attempted?.();
            attempted = undefined;
            return await store.replace(kind, seen, next);
          },
        }),
    });
    const made = await halfMade(world);
    attempted = () => undo({ ...world.context, store: world.realStore }, made, undefined);
    const wanted = podAllocation(world, "licence", entries("10.20.0.70"));
    const got = granted(await reserve(world.context, wanted, "nothing"));
    await world.settle();
    assert.notEqual(got.claim.uid, made.uid);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("does not wait any longer for its pod by that", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await halfMade(world);
    world.clock.advance(10_000);
    const wanted = podAllocation(world, "licence", entries(BOTH));
    const got = granted(await reserve(world.context, wanted, "nothing"));
    assert.ok((got.claim.record.admittedAt ?? 0) < world.clock.now());
    assert.notEqual(got.claim.revision, made.revision);
    assert.notEqual(got.claim.record.admittedAt, made.record.admittedAt);
  });
});

describe("a claim that a block stood against, which has gone", () => {
  const POOL = { ...DB_POOL, spec: { ...DB_POOL.spec, blockSize: { ipv4: 28 } } };

  /** As its attempt has made it, which has read the block. */
  async function made(world: World): Promise<Stored<"claim">> {
    const { key, identity, request, retention } = podAllocation(world, "licence", entries("10.20.0.70"));
    const record = claimRecord({ ...key, identity, request, retention, nonce: "first" });
    await world.realStore.create(
      "reservation",
      reservationRecord("10.20.0.70", { claim: key, nonce: "first" }),
    );
    const addresses = addrs("10.20.0.70");
    const { stored } = await world.realStore.create("claim", {
      ...record,
      ...{ addresses, admittedAt: world.clock.now() },
    });
    await world.settle();
    return stored;
  }

  for (const seen of ["nothing", "pod"] as const satisfies readonly Seen[]) {
    it(`is not undone once somebody was told of it who had seen: ${seen}`, async () => {
      await using world = await openWorld({ pools: [POOL] });
      const tried = await made(world);
      const got = granted(
        await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), seen),
      );
      await undo(world.context, tried, undefined);
      assert.deepEqual(got.addresses, tried.record.addresses);
      assert.equal((await world.realStore.get("claim", tried.key))?.uid, tried.uid);
      await assertClean(world);
    });
  }

  it("costs one write, however often somebody asks", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await made(world);
    const ask = async () =>
      granted(
        await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "nothing"),
      );
    const first = await ask();
    await world.settle();
    const before = world.dump();
    for (let n = 0; n < 3; n++) assert.equal((await ask()).claim.revision, first.claim.revision);
    assert.equal(world.dump(), before);
  });

  it("costs no write where its pool has no blocks, or a pod has had it", async () => {
    for (const [pool, binding] of [
      [DB_POOL, undefined],
      [POOL, bindingTo("licence", "node-a")],
    ] as const) {
      await using world = await openWorld({ pools: [pool] });
      const tried = await made(world);
      if (binding !== undefined) await world.realStore.replace("claim", tried, { ...tried.record, binding });
      await world.settle();
      const before = world.dump();
      granted(
        await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "nothing"),
      );
      assert.equal(world.dump(), before);
    }
  });
});
