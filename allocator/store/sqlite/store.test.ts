// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { storeContract } from "../contract/contract.ts";
import { addr, bareClaim, fullClaim, nth, poolOf, reservationOf } from "../contract/samples.ts";
import { collect, converges, created, expectReplaced, listed, syncedWatch } from "../contract/subject.ts";
import type { Store } from "../store.ts";
import { DEPS, fault, fileIn, meddle, newFolder, open } from "../testing/sqlite-files.ts";
import { type Database, openDatabase } from "./database.ts";
import { openSqliteStore } from "./store.ts";

storeContract("sqlite in memory", async () => {
  const database = openDatabase(":memory:");
  const store = openSqliteStore(database, DEPS);
  return {
    store,
    dispose: async () => {
      await store.close();
      database.close();
    },
  };
});

storeContract("sqlite in a file", async () => {
  const folder = newFolder();
  const handles: { database: Database; store: Store }[] = [];
  const openHandle = () => {
    const database = openDatabase(join(folder, "berth.db"));
    const store = openSqliteStore(database, DEPS);
    handles.push({ database, store });
    return store;
  };
  return {
    store: openHandle(),
    second: async () => openHandle(),
    dispose: async () => {
      for (const { database, store } of handles) {
        await store.close();
        database.close();
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
});

describe("sqlite store", () => {
  it("has everything after it was closed and opened again", async (t) => {
    const path = fileIn(t);
    const first = open(t, path);
    const pool = await created(first.store, "pool", poolOf("db"));
    const claim = await created(first.store, "claim", fullClaim("mysql-0"));
    const gone = await created(first.store, "reservation", reservationOf(nth(51)));
    await first.store.remove("reservation", gone);
    await first.store.close();
    first.database.close();
    const { store } = open(t, path);
    assert.deepEqual(await listed(store, "pool"), [pool]);
    assert.deepEqual(await listed(store, "claim"), [claim]);
    const again = await created(store, "reservation", gone.record);
    assert.ok(Number(again.revision) > Number(claim.revision), "revisions go on");
  });

  it("keeps the status that a claim is created with", async (t) => {
    const { store } = open(t, ":memory:");
    const stored = await created(store, "claim", fullClaim("mysql-0"));
    assert.deepEqual(stored.record, fullClaim("mysql-0"));
  });

  it("stamps records by its clock, with a uid from its randomness", async (t) => {
    const random = { token: () => "uid-1", fraction: () => 0 };
    const { store } = open(t, ":memory:", { clock: new ManualClock(1_700_000_000_000), random });
    const { uid, createdAt } = await created(store, "pool", poolOf("db"));
    assert.deepEqual([uid, createdAt], ["uid-1", 1_700_000_000_000]);
  });

  it("lists addresses of both families in the order of their text", async (t) => {
    const { store } = open(t, ":memory:");
    const texts = ["fd00:20::51", "10.20.0.9", "10.20.0.51", "::1", "2001:db8::1", "10.3.0.1"];
    await Promise.all(texts.map((text) => created(store, "reservation", reservationOf(addr(text)))));
    assert.deepEqual(
      (await listed(store, "reservation")).map(({ key }) => key),
      [...texts].sort(),
    );
  });

  it("holds no transaction open once a list is read or left", async (t) => {
    const path = fileIn(t);
    const { store } = open(t, path);
    const other = meddle(t, path);
    const isHeld = () => other.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"] === 1;
    await Promise.all([1, 2, 3].map((i) => created(store, "reservation", reservationOf(nth(i)))));
    for await (const { record } of store.list("reservation")) {
      await store.create("pool", poolOf(`seen-${record.address}`));
      assert.equal(isHeld(), true, "the moment is kept");
      if (record.address === nth(2)) break;
    }
    assert.equal(isHeld(), false);
    assert.equal((await listed(store, "reservation")).length, 3);
    assert.equal(isHeld(), false);
  });

  it("never turns a record into one of another key", async (t) => {
    const { store } = open(t, ":memory:");
    const seen = await created(store, "claim", bareClaim("mysql-0"));
    await assert.rejects(
      store.replace("claim", seen, bareClaim("mysql-1")),
      fault("INTERNAL", "claim shop/mysql-0 cannot become shop/mysql-1"),
    );
  });

  it("puts 100 creates of one turn into one commit", async (t) => {
    let commits = 0;
    const { store } = open(t, ":memory:", { beforeCommit: () => commits++ });
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => created(store, "reservation", reservationOf(nth(i)))),
    );
    assert.equal(commits, 1);
  });

  it("refuses everything once it is closed, ends its watches, and leaves the database open", async (t) => {
    const { store, database } = open(t, ":memory:");
    const watching = await syncedWatch(store, "pool");
    const seen = await created(store, "pool", poolOf("db"));
    await store.close();
    await store.close();
    await watching.stop();
    const closed = fault("STORE_UNAVAILABLE", "the store is closed");
    await assert.rejects(store.create("pool", poolOf("db")), closed);
    await assert.rejects(store.get("pool", "db"), closed);
    await assert.rejects(store.replace("pool", seen, poolOf("db")), closed);
    await assert.rejects(store.remove("pool", seen), closed);
    await assert.rejects(listed(store, "pool"), closed);
    assert.deepEqual(await collect(store.watch("pool", new AbortController().signal)), []);
    assert.equal(database.read((sql) => sql.all("SELECT * FROM records")).length, 1);
  });

  it("is read, listed and watched in a file that is open for reading only", async (t) => {
    const path = fileIn(t);
    const clock = new ManualClock();
    const writer = open(t, path);
    const first = await created(writer.store, "pool", poolOf("a"));
    const { store } = open(t, path, { readOnly: true, clock });
    const watching = await syncedWatch(store, "pool");
    const second = await created(writer.store, "pool", poolOf("b"));
    clock.advance(200);
    await converges(watching, [first, second]);
    assert.deepEqual(await listed(store, "pool"), [first, second]);
    const refused = fault("STORE_READ_ONLY", `${path} was opened for reading only`);
    await assert.rejects(store.create("pool", poolOf("c")), refused);
    await assert.rejects(store.remove("pool", first), refused);
    await watching.stop();
  });
});

describe("sqlite store: trouble", () => {
  it("says which record is damaged, and serves the others", async (t) => {
    const path = fileIn(t);
    const { store } = open(t, path);
    const whole = await created(store, "reservation", reservationOf(nth(1)));
    const seen = await created(store, "reservation", reservationOf(nth(2)));
    meddle(t, path).exec("UPDATE records SET body = substr(body, 1, 40) WHERE key = '10.20.0.2'");
    const damaged = fault(
      "STATE_CORRUPT",
      /^the stored reservation 10\.20\.0\.2 cannot be decoded: .*; restore it from a backup$/,
    );
    await assert.rejects(store.get("reservation", nth(2)), damaged);
    await assert.rejects(listed(store, "reservation"), damaged);
    await assert.rejects(store.replace("reservation", seen, seen.record), damaged);
    await assert.rejects(collect(store.watch("reservation", new AbortController().signal)), damaged);
    const results = await Promise.allSettled([
      store.create("reservation", reservationOf(nth(2))),
      store.create("reservation", reservationOf(nth(3))),
    ]);
    assert.deepEqual(
      results.map((result) => (result.status === "rejected" ? damaged(result.reason) : result.value.kind)),
      [true, "created"],
    );
    assert.deepEqual(await store.get("reservation", nth(1)), whole);
  });

  it("keeps nothing, and tells no watch, of a write whose commit fails", async (t) => {
    let failing = false;
    const beforeCommit = () => {
      if (failing) throw new Error("power cut");
    };
    const { store, database } = open(t, ":memory:", { beforeCommit });
    const claim = await created(store, "claim", bareClaim("mysql-0"));
    const watching = await syncedWatch(store, "claim");
    const rows = () =>
      database.read((sql) => [sql.all("SELECT * FROM records"), sql.all("SELECT * FROM changes")]);
    const before = rows();
    failing = true;
    const writes: readonly (() => Promise<unknown>)[] = [
      () => store.create("claim", bareClaim("mysql-1")),
      () => store.replace("claim", claim, bareClaim("mysql-0", { nonce: "n2" })),
      () => store.report(claim, { message: "it waits" }),
      () => store.remove("claim", claim),
    ];
    for (const write of writes) {
      await assert.rejects(write, /power cut/);
      assert.deepEqual(rows(), before);
    }
    failing = false;
    const changed = expectReplaced(await store.report(claim, { message: "it waits" }));
    await converges(watching, [changed]);
    assert.deepEqual(watching.said.slice(3), [{ type: "put", stored: changed }]);
    await watching.stop();
  });

  it("goes on reading when the disk is full, and writes again when there is room", async (t) => {
    const { store, database } = open(t, fileIn(t));
    const stored = await created(store, "reservation", reservationOf(nth(0)));
    const pages = database.read((sql) => sql.get("PRAGMA page_count")?.["page_count"]);
    database.read((sql) => sql.get(`PRAGMA max_page_count = ${Number(pages) + 2}`));
    let last = 0;
    const fill = async () => {
      for (; ; last++) await created(store, "reservation", reservationOf(nth(last + 1)));
    };
    await assert.rejects(fill, fault("STORE_FULL", /^the disk under .* is full; free some space on it/));
    assert.deepEqual(await store.get("reservation", nth(0)), stored);
    assert.equal((await listed(store, "reservation")).length, last + 1);
    assert.equal(await store.get("reservation", nth(last + 1)), undefined);
    database.read((sql) => sql.get("PRAGMA max_page_count = 1000000"));
    await created(store, "reservation", reservationOf(nth(last + 1)));
  });
});
