// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { BerthError } from "../../base/errors.ts";
import { type Clock, noopLogger } from "../../base/ports.ts";
import { nth, poolOf, reservationOf } from "../contract/samples.ts";
import { converges, created, eventually, expectReplaced, listed, syncedWatch } from "../contract/subject.ts";
import type { Change, Store } from "../store.ts";
import { fileIn, meddle, open } from "../testing/sqlite-files.ts";
import { openDatabase } from "./database.ts";
import { openSqliteStore } from "./store.ts";

describe("sqlite store: watch", () => {
  it("starts over when it fell behind the log, and misses nothing", async (t) => {
    const { store } = open(t, ":memory:", { keptChanges: 10 });
    const gone = await created(store, "pool", poolOf("gone"));
    const watch = new PulledWatch(store);
    await watch.until("synced");
    await store.remove("pool", gone);
    const names = Array.from({ length: 600 }, (_, i) => `p${String(i).padStart(3, "0")}`);
    await Promise.all(names.map((name) => created(store, "pool", poolOf(name))));
    await watch.until("relist");
    await watch.until("synced");
    const puts = names.map((name, i) => `${name}@${i + 3}`);
    assert.deepEqual(watch.said, ["relist", "gone@1", "synced", "relist", ...puts, "synced"]);
    await watch.end();
  });

  it("does not go back in time: what a pass has shown does not come again older", async (t) => {
    const { store } = open(t, ":memory:");
    const names = Array.from({ length: 600 }, (_, i) => `p${String(i).padStart(3, "0")}`);
    await Promise.all(names.map((name) => created(store, "pool", poolOf(name))));
    const get = async (key: string) => (await store.get("pool", key)) ?? assert.fail(key);
    const disable = async (key: string, disabled: boolean) =>
      expectReplaced(await store.replace("pool", await get(key), poolOf(key, { disabled })));
    const watch = new PulledWatch(store);
    await watch.until("p000@1");
    await disable("p001", true); // 601: its old state was read already
    await disable("p500", true);
    await disable("p500", false); // 603
    await store.remove("pool", await get("p501")); // 604
    await store.remove("pool", await get("p502"));
    await created(store, "pool", poolOf("p502"));
    await disable("p502", true); // 607
    await watch.until("synced");
    await disable("p000", true); // 608
    await watch.until("p000@608");
    const reported = watch.said.filter((words) => /^p(000|001|500|501|502)@/.test(words));
    assert.deepEqual(reported, [
      "p000@1",
      "p001@2",
      "p500@603",
      "p502@607",
      "p001@601",
      "p501@gone",
      "p000@608",
    ]);
    await watch.end();
  });

  it("keeps to its place in a log that is cut behind it", async (t) => {
    const { store } = open(t, ":memory:", { keptChanges: 10 });
    const watching = await syncedWatch(store, "reservation");
    for (let i = 0; i < 300; i++) {
      await created(store, "reservation", reservationOf(nth(i)));
    }
    await converges(watching, await listed(store, "reservation"));
    assert.equal(watching.said.filter(({ type }) => type === "relist").length, 1);
    await watching.stop();
  });

  it("starts over when an older backup was restored into the file, and shows what is written next", async (t) => {
    const path = fileIn(t);
    const { store } = open(t, path);
    await created(store, "pool", poolOf("a"));
    const watching = await syncedWatch(store, "pool");
    for (const name of ["b", "c", "d"]) await created(store, "pool", poolOf(name));
    await eventually("the last", () => watching.state.has("d"));
    meddle(t, path).exec(
      `BEGIN; DELETE FROM records WHERE revision > 1; DELETE FROM changes WHERE revision > 1;
       UPDATE sqlite_sequence SET seq = 1; COMMIT`,
    );
    await eventually("what the backup has", () => watching.state.size === 1);
    await created(store, "pool", poolOf("e"));
    await converges(watching, await listed(store, "pool"));
    await watching.stop();
  });

  it("of other processes looks five times a second, and only while somebody watches", async (t) => {
    const path = fileIn(t);
    const clock = new ManualClock();
    const { store } = open(t, path, { clock });
    const other = open(t, path).store;
    assert.equal(clock.sleeping, 0);
    const informers = [await syncedWatch(store, "pool"), await syncedWatch(store, "claim")];
    const [pools] = informers;
    assert.equal(clock.sleeping, 1);
    await created(other, "pool", poolOf("db"));
    clock.advance(199);
    await new Promise(setImmediate);
    assert.equal(pools?.state.size, 0);
    clock.advance(1);
    await eventually("the pool", () => pools?.state.has("db") === true);
    for (const watching of informers) await watching.stop();
    assert.equal(clock.sleeping, 0);
  });

  it("is woken by a change of a record, once, and by no other commit of the same database", async (t) => {
    const { store, database } = open(t, ":memory:");
    const informers = [await syncedWatch(store, "pool"), await syncedWatch(store, "claim")];
    const turns = async () => {
      for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    };
    await created(store, "pool", poolOf("a"));
    await turns();
    const looks = (["read", "readOnce"] as const).map((name) => t.mock.method(database, name).mock);
    await database.write((sql) => sql.run("CREATE TABLE journal (id INTEGER)"));
    await database.write((sql) => sql.run("INSERT INTO journal VALUES (1)"));
    await turns();
    const exists = await store.create("pool", poolOf("a"));
    await turns();
    assert.equal(exists.kind, "exists");
    assert.deepEqual(
      looks.map((mock) => mock.callCount()),
      [0, 0],
    );
    await created(store, "pool", poolOf("b"));
    await turns();
    assert.deepEqual([...(informers[0]?.state.keys() ?? [])].sort(), ["a", "b"]);
    assert.deepEqual(
      looks.map((mock) => mock.callCount()),
      [0, 1],
      "what a commit changed is read once for all of them",
    );
    for (const watching of informers) await watching.stop();
  });

  it("is woken by a change that another store of the same database wrote, after one that was undone", async (t) => {
    let fault: Error | undefined;
    const beforeCommit = () => {
      if (fault !== undefined) throw fault;
    };
    const database = openDatabase(":memory:", { beforeCommit });
    t.after(() => database.close());
    const deps = { clock: new ManualClock(), random: new SeededRandom(1), log: noopLogger };
    const [store, other] = [openSqliteStore(database, deps), openSqliteStore(database, deps)];
    const watching = await syncedWatch(store, "pool");
    fault = new BerthError("STORE_FULL", "full");
    await assert.rejects(other.create("pool", poolOf("a")), { code: "STORE_FULL" });
    fault = undefined;
    await created(other, "pool", poolOf("a"));
    await eventually("the pool", () => watching.state.has("a"));
    await watching.stop();
    for (const one of [store, other]) await one.close();
  });

  it("of memory does not look for other processes", async (t) => {
    const clock = new ManualClock();
    const watching = await syncedWatch(open(t, ":memory:", { clock }).store, "pool");
    assert.equal(clock.sleeping, 0);
    await watching.stop();
  });

  it("goes on where it was when a read failed", async (t) => {
    const path = fileIn(t);
    const logged: string[] = [];
    const clock = new ManualClock();
    const log = { ...noopLogger, warn: (message: string) => logged.push(message) };
    const { store } = open(t, path, { clock, log });
    const watching = await syncedWatch(store, "pool");
    const db = meddle(t, path);
    db.exec("ALTER TABLE changes RENAME TO hidden");
    await advanceUntil(clock, () => logged.length > 0);
    db.exec("ALTER TABLE hidden RENAME TO changes");
    const stored = await created(store, "pool", poolOf("db"));
    await advanceUntil(clock, () => watching.state.size === 1);
    assert.equal(logged[0], "watch could not read the store");
    assert.deepEqual(watching.said, [{ type: "relist" }, { type: "synced" }, { type: "put", stored }]);
    await watching.stop();
  });
});

/** A watch of pools that goes on only when it is told to, and what it said so far. */
class PulledWatch {
  readonly said: string[] = [];
  readonly #changes: AsyncIterator<Change<"pool">>;

  constructor(store: Store) {
    this.#changes = store.watch("pool", new AbortController().signal)[Symbol.asyncIterator]();
  }

  /** relist, synced, key@revision or key@gone. */
  async until(words: string): Promise<void> {
    do {
      const { value } = await this.#changes.next();
      this.said.push(wordsOf(value));
    } while (this.said.at(-1) !== words);
  }

  async end(): Promise<void> {
    await this.#changes.return?.();
  }
}

function wordsOf(change: Change<"pool">): string {
  if (change.type === "put") return `${change.stored.key}@${change.stored.revision}`;
  return change.type === "gone" ? `${change.key}@gone` : change.type;
}

async function advanceUntil(clock: ManualClock & Clock, holds: () => boolean): Promise<void> {
  await eventually("what time brings", () => {
    clock.advance(100);
    return holds();
  });
}
