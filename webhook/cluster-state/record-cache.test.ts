// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Logger, noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Change, Kind, Store } from "../../allocator/store/store.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { altered } from "../../test/simulation/altered.ts";
import { claimRecord, DB_POOL } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { syncRecords } from "./record-cache.ts";

/** A store whose first watch of claims ends with a fault after its full pass, and how many watches are under way. */
function failingOnce(store: Store) {
  const seen = { begun: 0, under: 0 };
  async function* watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const fails = kind === "claim" && !seen.begun++;
    seen.under++;
    try {
      for await (const change of store.watch(kind, signal)) {
        yield change;
        if (fails && change.type === "synced") throw new Error("a defect");
      }
    } finally {
      seen.under--;
    }
  }
  return { store: altered(store, { watch }), seen };
}

describe("syncRecords", () => {
  it("begins anew after a watch failed, and knows what changed meanwhile", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { store, seen } = failingOnce(world.realStore);
    const clock = new ManualClock();
    const errors: unknown[] = [];
    const log: Logger = { ...noopLogger, error: (message, fields) => void errors.push([message, fields]) };
    const cache = new RecordCache(noopLogger);
    const stop = new AbortController();
    const following = syncRecords({ store, cache, clock, log }, stop.signal);
    await eventLoopTurns();
    assert.deepEqual(errors, [["records are not followed any more; begins anew", { error: "a defect" }]]);
    assert.equal(seen.under, 0, "the watches of the other kinds have ended too");
    await world.realStore.create("claim", claimRecord());
    await eventLoopTurns();
    assert.equal(cache.claim("shop/mysql-0"), undefined);
    clock.advance(5_000);
    await following.synced;
    await eventLoopTurns();
    assert.ok(cache.claim("shop/mysql-0"));
    assert.equal(seen.under, 4);
    stop.abort();
    await following.ended;
    assert.deepEqual([seen.under, clock.sleeping, errors.length], [0, 0, 1]);
  });
});
