// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Change, Store, Stored } from "../store.ts";
import { bareClaim, nth, poolOf, reservationOf } from "./samples.ts";
import {
  caseOf,
  collect,
  converges,
  created,
  eventually,
  expectReplaced,
  listed,
  MANY,
  type Open,
  startWatch,
  syncedWatch,
} from "./subject.ts";

/** watch. */
export function watchContract(open: Open): void {
  describe("watch", () => {
    orderCases(open);
    convergenceCases(open);
    endCases(open);
  });
}

function orderCases(open: Open): void {
  caseOf(open, "of nothing is relist, synced", async ({ store }) => {
    const watching = await syncedWatch(store, "pool");
    assert.deepEqual(watching.said, [{ type: "relist" }, { type: "synced" }]);
    await watching.stop();
  });

  caseOf(
    open,
    "shows every record between relist and synced, and then every change in order",
    async ({ store }) => {
      const before = [
        await created(store, "reservation", reservationOf(nth(1))),
        await created(store, "reservation", reservationOf(nth(2))),
      ];
      const watching = await syncedWatch(store, "reservation");
      const puts = before.map((stored) => ({ type: "put" as const, stored }));
      assert.deepEqual(watching.said, [{ type: "relist" }, ...puts, { type: "synced" }]);
      const changes = await changeAll(store, before);
      await eventually("the changes", () => watching.said.length >= 4 + changes.length);
      assert.deepEqual(watching.said.slice(4), changes);
      await watching.stop();
    },
  );

  caseOf(open, "shows the changes of its own kind only", async ({ store }) => {
    const pools = await syncedWatch(store, "pool");
    const claims = await syncedWatch(store, "claim");
    const reservations = await syncedWatch(store, "reservation");
    const pool = await created(store, "pool", poolOf("db"));
    const claim = await created(store, "claim", bareClaim("mysql-0"));
    const reported = expectReplaced(await store.report(claim, { message: "it waits" }));
    const reservation = await created(store, "reservation", reservationOf(nth(1)));
    await converges(pools, [pool]);
    await converges(claims, [reported]);
    await converges(reservations, [reservation]);
    for (const watching of [pools, claims, reservations]) {
      // A claim may come more often: an engine may write the status of a new one separately.
      const keys = watching.said.slice(2).map((change) => (change.type === "put" ? change.stored.key : ""));
      assert.deepEqual(new Set(keys), new Set(watching.state.keys()));
      await watching.stop();
    }
  });
}

/** One change after another: replaced twice, removed, created again, a new one. Gives what a watch must say. */
async function changeAll(
  store: Store,
  [first, second]: readonly Stored<"reservation">[],
): Promise<Change<"reservation">[]> {
  assert.ok(first && second);
  const marked = expectReplaced(await store.replace("reservation", first, { ...first.record, marked: true }));
  const unmarked = expectReplaced(await store.replace("reservation", marked, first.record));
  await store.remove("reservation", second);
  const again = await created(store, "reservation", second.record);
  const third = await created(store, "reservation", reservationOf(nth(3)));
  return [
    { type: "put", stored: marked },
    { type: "put", stored: unmarked },
    { type: "gone", key: second.key },
    { type: "put", stored: again },
    { type: "put", stored: third },
  ];
}

function convergenceCases(open: Open): void {
  caseOf(open, "started before, during or after the writes comes to the same state", async ({ store }) => {
    const informers = [startWatch(store, "reservation")];
    for (let round = 0; round < 4; round++) {
      const writing = writeRound(store, round);
      informers.push(startWatch(store, "reservation"), startWatch(store, "reservation"));
      await writing;
    }
    informers.push(startWatch(store, "reservation"));
    const records = await listed(store, "reservation");
    assert.equal(records.length, 4 * 60);
    for (const watching of informers) await converges(watching, records);
    for (const watching of informers) await watching.stop();
  });

  caseOf(
    open,
    "comes to the right state over several pages, whatever is written meanwhile",
    async ({ store, many = MANY }) => {
      const rounds = Math.floor(many / 180);
      for (let round = 0; round < rounds; round++) await writeRound(store, round);
      const watching = startWatch(store, "reservation");
      await eventually("the first records", () => watching.said.length > 1);
      const victims = (await listed(store, "reservation")).filter((_, i) => i % 7 === 0);
      await Promise.all([
        writeRound(store, rounds),
        ...victims.map((stored) => store.remove("reservation", stored)),
      ]);
      await converges(watching, await listed(store, "reservation"));
      await watching.stop();
    },
  );
}

/** 100 addresses created, 20 of them changed, 40 removed again, in no order. */
async function writeRound(store: Store, round: number): Promise<void> {
  await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const stored = await created(store, "reservation", reservationOf(nth(round * 100 + i)));
      if (i % 5 === 0) await store.replace("reservation", stored, { ...stored.record, marked: true });
      if (i % 5 === 1 || i % 5 === 2) await store.remove("reservation", stored);
    }),
  );
}

function endCases(open: Open): void {
  caseOf(open, "ends when its signal aborts, while it waits", async ({ store }) => {
    const abort = new AbortController();
    const changes = store.watch("pool", abort.signal)[Symbol.asyncIterator]();
    assert.deepEqual(await changes.next(), { done: false, value: { type: "relist" } });
    assert.deepEqual(await changes.next(), { done: false, value: { type: "synced" } });
    const waiting = changes.next();
    abort.abort();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    assert.deepEqual(await changes.next(), { done: true, value: undefined });
  });

  caseOf(open, "ends when its signal aborts in the middle of a pass", async ({ store }) => {
    await writeRound(store, 0);
    const abort = new AbortController();
    let puts = 0;
    for await (const change of store.watch("reservation", abort.signal)) {
      if (change.type === "put" && ++puts === 3) abort.abort();
    }
    assert.equal(puts, 3);
  });

  caseOf(open, "says nothing when its signal was aborted before", async ({ store }) => {
    assert.deepEqual(await collect(store.watch("pool", AbortSignal.abort())), []);
  });

  caseOf(open, "may be left, and others go on", async ({ store }) => {
    const other = await syncedWatch(store, "pool");
    for await (const change of store.watch("pool", new AbortController().signal)) {
      if (change.type === "synced") break;
    }
    const stored = await created(store, "pool", poolOf("db"));
    await converges(other, [stored]);
    await other.stop();
  });
}
