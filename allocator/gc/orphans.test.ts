// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  claimRecord,
  NOW,
  reservationRecord,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { findOrphans } from "./orphans.ts";
import { POOLS } from "./testing/passes.ts";

describe("findOrphans", () => {
  const stray = reservationRecord("10.20.0.90", { claim: { namespace: "shop", name: "gone" }, nonce: "x" });
  const claim = claimRecord();

  it("looks twice, with 30 s in between, and only takes what did not change", () => {
    const view = viewOf({ pools: POOLS, claims: [claim], reservations: [...reservationsOf(claim), stray] });
    const first = findOrphans(view, new Map(), NOW);
    assert.deepEqual([first.orphans, [...first.firstSeen.keys()]], [[], ["10.20.0.90"]]);
    assert.deepEqual(findOrphans(view, first.firstSeen, NOW + 29_999).orphans, []);
    const second = findOrphans(view, first.firstSeen, NOW + 30_000);
    assert.deepEqual(
      second.orphans.map(({ key }) => key),
      ["10.20.0.90"],
    );
    const touched = viewOf({ pools: POOLS, reservations: [stray] });
    const third = findOrphans(touched, second.firstSeen, NOW + 60_000);
    assert.deepEqual([third.orphans, third.firstSeen.get(addr("10.20.0.90"))?.at], [[], NOW + 60_000]);
  });

  it("goes by the record's age on its first look, and says of none that it has been suspect for longer than the grace", () => {
    const view = viewOf({ pools: POOLS, reservations: [stray] });
    const { createdAt = 0 } = view.reservation(stray.address) ?? {};
    const look = (afterMs: number) => findOrphans(view, undefined, createdAt + afterMs);
    const at = (afterMs: number) => look(afterMs).firstSeen.get(stray.address)?.at;
    assert.deepEqual(
      [at(-1), at(29_999), at(365 * 86_400_000)],
      [createdAt - 1, createdAt, createdAt + 365 * 86_400_000 - 30_000],
    );
    assert.deepEqual(
      [look(29_999), look(30_000)].map(({ orphans }) => orphans.length),
      [0, 1],
    );
  });

  it("forgets an orphan that turned out to be none", () => {
    const view = viewOf({ pools: POOLS, reservations: [stray] });
    const first = findOrphans(view, new Map(), NOW);
    const cured = viewOf({
      pools: POOLS,
      claims: [claimRecord({ name: "gone", nonce: "x", addresses: [stray.address] })],
      reservations: [stray],
    });
    assert.equal(findOrphans(cured, first.firstSeen, NOW + 10_000).firstSeen.size, 0);
  });

  it("frees what cooled for as long as its pool says", () => {
    const cooling = { ...stray, releasedAt: NOW };
    const of = (now: number) =>
      findOrphans(viewOf({ pools: POOLS, reservations: [cooling] }), new Map(), now).cooled.length;
    assert.deepEqual([of(NOW + 29_999), of(NOW + 30_000)], [0, 1]);
  });

  it("of a pool that is not known it frees it as the pool says that has the address now, else after the usual time", () => {
    const cooling = { ...stray, pool: "gone", releasedAt: NOW };
    const [db = assert.fail()] = POOLS;
    const quick = { ...db, spec: { ...db.spec, cooldown: "5s" } };
    const of = (pools: readonly PoolRecord[], now: number) =>
      findOrphans(viewOf({ pools, reservations: [cooling] }), new Map(), now).cooled.length;
    assert.deepEqual([of([quick], NOW + 4_999), of([quick], NOW + 5_000)], [0, 1]);
    assert.deepEqual([of([], NOW), of([], NOW + 29_999), of([], NOW + 30_000)], [0, 0, 1]);
  });

  it("takes the reservations of a releasing claim for its own", () => {
    const claims = [claimRecord({ releasing: true, addresses: [] })];
    const view = viewOf({ pools: POOLS, claims, reservations: reservationsOf(claim) });
    assert.equal(findOrphans(view, new Map(), NOW).firstSeen.size, 0);
  });
});
