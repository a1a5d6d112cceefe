// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimRecord, NOW, reservationRecord, reservationsOf, viewOf } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { ServerTimes } from "../lifecycle/server-times.ts";
import { findOrphans } from "./orphans.ts";
import { NOTHING, POOLS, pass } from "./testing/passes.ts";

describe("a time that is a year ahead", () => {
  const ahead = NOW + 365 * 86_400_000;

  it("cools an address for the pool's cooldown, from when it was met", async () => {
    await using world = await openWorld({ pools: POOLS });
    const cooling = reservationRecord("10.20.0.90", {
      claim: { namespace: "shop", name: "gone" },
      nonce: "x",
    });
    await world.realStore.create("reservation", { ...cooling, releasedAt: ahead });
    await world.settle();
    const collector = world.collector();
    assert.equal(await pass(world, collector), NOTHING);
    assert.equal(await pass(world, collector, 29_999), NOTHING);
    assert.equal(await pass(world, collector, 1), "0 orphans, 1 cooled, 0 released, 0 retained");
  });

  it("cools as many addresses as there are", () => {
    const reservations = Array.from({ length: 10_001 }, (_, n) =>
      reservationRecord(`10.20.${n >> 8}.${n & 255}`, { nonce: "x", releasedAt: ahead }),
    );
    const view = viewOf({ pools: POOLS, reservations });
    const stamps = new ServerTimes();
    const cooled = (now: number) => findOrphans(view, new Map(), now, { stamps }).cooled.length;
    assert.deepEqual([NOW, NOW + 10_000, NOW + 30_000].map(cooled), [0, 0, 10_001]);
  });

  it("keeps a claim whose pod never came for its 120 s, from when it was met", async () => {
    await using world = await openWorld({ pools: POOLS });
    const claim = claimRecord({ admittedAt: ahead });
    for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
    await world.realStore.create("claim", claim);
    await world.settle();
    const collector = world.collector();
    const released = async (ms: number) => (await pass(world, collector, ms)).includes("1 released");
    assert.deepEqual([await released(0), await released(119_999), await released(1)], [false, false, true]);
  });
});
