// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import type { Claim } from "../model/claim.ts";
import type { Store, Stored } from "../store/store.ts";
import { type BindTarget, bind, isDetached } from "./bind.ts";

const POD: BindTarget = { name: "a", uid: "uid-of-a", node: "node-a", token: "", interface: "eth0" };

/** A claim of pod a, whose last sandbox was seen to end, or is up. */
async function bound(world: World, detached: boolean, over: Partial<Claim> = {}): Promise<Stored<"claim">> {
  const attachment = attachmentOf("a", { detached });
  const claim = claimRecord({
    addresses: [addr("10.20.0.70")],
    binding: bindingTo("a", "node-a"),
    ...over,
    status: { attachment },
  });
  for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
  const created = await world.realStore.create("claim", claim);
  return created.stored;
}

async function bindAgain(world: World, key: string, pod: BindTarget): Promise<Stored<"claim">> {
  return granted(await bind(world.context, key, pod, async () => ({ fenced: false, holdExpired: false })));
}

describe("bind of a pod that has the claim already", () => {
  it("reports the new sandbox when the last one was seen to end, so that nobody moves the claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const seen = await bound(world, true);
    assert.equal(isDetached(seen.record), true);
    const { record } = await bindAgain(world, seen.key, { ...POD, containerID: "next" });
    assert.equal(isDetached(record), false);
    assert.deepEqual(record.binding, seen.record.binding);
    const attachment = attachmentOf("a", { containerID: "next", since: world.clock.now() });
    assert.deepEqual(record.status, { attachment });
    assert.deepEqual((await world.realStore.get("claim", seen.key))?.record, record);
  });

  it("does so too when the binding was taken away meanwhile", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { binding: _, ...unbound } = (await bound(world, true)).record;
    const seen = await world.realStore.get("claim", `${unbound.namespace}/${unbound.name}`);
    assert.ok(seen);
    await world.realStore.replace("claim", seen, unbound);
    const { record } = await bindAgain(world, seen.key, { ...POD, containerID: "next" });
    assert.equal(record.binding?.podUID, "uid-of-a");
    assert.equal(isDetached(record), false);
  });

  it("writes nothing while a sandbox is up, or when none is going up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const up = await bound(world, false);
    const before = world.dump();
    assert.deepEqual(await bindAgain(world, up.key, { ...POD, containerID: "next" }), up);
    assert.deepEqual(await bindAgain(world, up.key, POD), up);
    assert.equal(world.dump(), before);
  });
});

describe("bind of a pod that says what it was admitted with", () => {
  const rows: readonly (readonly [string, readonly string[] | undefined, string | undefined])[] = [
    ["nothing", undefined, undefined],
    ["what the claim holds", ["10.20.0.70"], undefined],
    [
      "something else",
      ["10.20.0.71"],
      "claim shop/mysql-0 holds 10.20.0.70 now, and pod a was admitted with 10.20.0.71; delete the pod and create it again",
    ],
    [
      "more",
      ["10.20.0.70", "fd00:20::7"],
      "claim shop/mysql-0 holds 10.20.0.70 now, and pod a was admitted with 10.20.0.70, fd00:20::7; delete the pod and create it again",
    ],
  ];
  for (const [title, assigned, words] of rows) {
    it(`${words === undefined ? "grants" : "refuses"} ${title}`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const seen = await bound(world, false);
      const pod = { ...POD, ...(assigned === undefined ? {} : { assigned }) };
      const got = await bind(world.context, seen.key, pod, async () => ({
        fenced: false,
        holdExpired: false,
      }));
      assert.equal(
        isRefusal(got) ? `${got.code}: ${got.message}` : undefined,
        words && `CLAIM_CHANGED: ${words}`,
      );
    });
  }
});

describe("bind by what was seen of a claim", () => {
  const NONE = { fenced: false, holdExpired: false };

  async function begin() {
    let reads = 0;
    const counting = (store: Store) =>
      overlay(store, {
        get: (kind, key) => {
          if (kind === "claim") reads++;
          return store.get(kind, key);
        },
      });
    const world = await openWorld({ pools: [DB_POOL], wrap: counting });
    const seen = await bound(world, true);
    const next: BindTarget = { name: "a", uid: "next", node: "node-b", token: "" };
    const tryBind = (pod: BindTarget) => bind(world.context, seen, pod, async () => NONE);
    return { world, seen, next, tryBind, reads: () => reads };
  }

  it("does not read what has not changed", async () => {
    const { world, seen, next, tryBind, reads } = await begin();
    await using _ = world;
    const { record } = granted(await tryBind(next));
    assert.deepEqual([record.binding?.podUID, record.binding?.node, reads()], ["next", "node-b", 0]);
    assert.deepEqual((await world.realStore.get("claim", seen.key))?.record, record);
  });

  it("goes by what is there when it has changed", async () => {
    const { world, seen, next, tryBind, reads } = await begin();
    await using _ = world;
    const attachment = attachmentOf("a", { containerID: "again" });
    await world.realStore.report(seen, { attachment });
    const got = await tryBind(next);
    assert.ok(isRefusal(got));
    assert.equal(got.code, "CLAIM_BUSY");
    assert.equal(reads(), 1);
  });

  it("refuses by what is there, not by what was seen", async () => {
    const { world, seen, next } = await begin();
    await using _ = world;
    const stale = { ...seen, record: { ...seen.record, releasing: true } };
    const got = granted(await bind(world.context, stale, next, async () => NONE));
    assert.equal(got.record.binding?.podUID, "next");
  });

  it("is not sure of a reservation that is gone", async () => {
    const { world, next, tryBind } = await begin();
    await using _ = world;
    const reservation = await world.realStore.get("reservation", "10.20.0.70");
    assert.ok(reservation);
    await world.realStore.remove("reservation", reservation);
    const got = await tryBind(next);
    assert.ok(isRefusal(got));
    assert.equal(got.code, "CLAIM_MISSING");
  });
});
