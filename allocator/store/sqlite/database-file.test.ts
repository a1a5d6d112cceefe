// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { BerthError, type FaultCode } from "../../base/errors.ts";
import { type LogFields, noopLogger } from "../../base/ports.ts";
import { coded, fault, folder, NOTES, note, notes, open } from "../testing/notes.ts";
import { openDatabase } from "./database.ts";
import { faultOf } from "./errors.ts";

describe("database: the file", () => {
  it("is made with its folder, for the owner alone", async (t) => {
    const parent = join(folder(t), "state", "berth");
    const path = join(parent, "berth.db");
    await note(open(t, path), "a");
    const modes = [parent, path, `${path}-wal`].map((name) => statSync(name).mode & 0o777);
    assert.deepEqual(modes, [0o700, 0o600, 0o600]);
    assert.deepEqual(readdirSync(parent).sort(), ["berth.db", "berth.db-shm", "berth.db-wal"]);
  });

  it("is whole and on the disk before it has its name, and its name is before it is used", (t) => {
    const path = join(folder(t), "berth.db");
    const waited: string[] = [];
    const { fsyncSync } = fs;
    t.mock.method(fs, "fsyncSync", (handle: number) => {
      const name = basename(readlinkSync(`/proc/self/fd/${handle}`));
      waited.push(`${statSync(`/proc/self/fd/${handle}`).isFile() ? name : "folder"}: ${existsSync(path)}`);
      fsyncSync(handle);
    });
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    openDatabase(path).close();
    assert.deepEqual(waited, ["draft: false", "folder: true"]);
  });

  it("keeps the mode that an administrator gave it", (t) => {
    const path = join(folder(t), "berth.db");
    open(t, path).close();
    chmodSync(path, 0o640);
    open(t, path).close();
    assert.equal(statSync(path).mode & 0o777, 0o640);
  });

  it("has a write-ahead log with an fsync for each commit, and no trust in its schema", (t) => {
    const database = open(t, join(folder(t), "berth.db"));
    const pragmas = ["journal_mode", "synchronous", "foreign_keys", "trusted_schema", "busy_timeout"];
    const values = database.read((sql) =>
      pragmas.map((name) => Object.values(sql.get(`PRAGMA ${name}`) ?? {})[0]),
    );
    assert.deepEqual(values, ["wal", 2, 0, 0, 5_000]);
  });

  it("is refused when another program or a newer Berth wrote it", (t) => {
    const dir = folder(t);
    const make = (name: string, ...statements: string[]): string => {
      const db = new DatabaseSync(join(dir, name));
      for (const statement of statements) db.exec(statement);
      db.close();
      return join(dir, name);
    };
    const other = "belongs to another program; give Berth another path";
    const tables = make("tables.db", "CREATE TABLE users (id INTEGER)");
    assert.throws(() => openDatabase(tables), fault("CONFIG_INVALID", `${tables} ${other}`));
    const marked = make("marked.db", "PRAGMA application_id = 7");
    assert.throws(() => openDatabase(marked), fault("CONFIG_INVALID", `${marked} ${other}`));
    const late = join(dir, "late.db");
    open(t, late).close();
    make("late.db", "PRAGMA user_version = 2");
    assert.throws(
      () => openDatabase(late),
      fault(
        "CONFIG_INVALID",
        `${late} was written by a newer Berth (format 2, this one reads 1); upgrade this one, or give it another file`,
      ),
    );
    const left = new DatabaseSync(tables);
    t.after(() => left.close());
    assert.equal(left.prepare("PRAGMA journal_mode").get()?.["journal_mode"], "delete", "left as it was");
  });

  it("is refused when it is damaged, with the way back", async (t) => {
    const dir = folder(t);
    const path = join(dir, "berth.db");
    const database = open(t, path);
    await Promise.all(Array.from({ length: 200 }, (_, i) => note(database, `${i}`.padStart(200, "x"))));
    database.close();
    const whole = readFileSync(path);
    const wayBack =
      "stop Berth, move it away together with its -wal and -shm, and put a backup in its place (sqlite3's .recover saves what can still be read)";

    writeFileSync(path, "this is a shopping list\n".repeat(100));
    assert.throws(
      () => openDatabase(path),
      fault("STATE_CORRUPT", `${path} is damaged (file is not a database); ${wayBack}`),
    );
    writeFileSync(path, whole);
    truncateSync(path, Math.floor(whole.length / 2 / 4096) * 4096);
    assert.throws(
      () => openDatabase(path),
      fault("STATE_CORRUPT", `${path} is damaged (database disk image is malformed); ${wayBack}`),
    );
    writeFileSync(path, Buffer.from(whole).fill(0x5a, 4096 * 3, 4096 * 4));
    assert.throws(() => openDatabase(path), coded("STATE_CORRUPT"));
    writeFileSync(path, whole);
    assert.equal(notes(open(t, path)).length, 200);
  });

  it("is refused where it cannot be made or read", (t) => {
    const dir = folder(t);
    writeFileSync(join(dir, "plain"), "");
    assert.throws(() => openDatabase(join(dir, "plain", "berth.db")), coded("STORE_UNAVAILABLE"));
    assert.throws(
      () => openDatabase(dir),
      fault("CONFIG_INVALID", `${dir} is a folder, not a file; move it away`),
    );
    assert.throws(() => openDatabase(join(dir, "none.db"), { readOnly: true }), coded("STORE_UNAVAILABLE"));
    const empty = join(dir, "plain");
    const words = `${empty} is empty; put a backup in its place, or delete it if it never was a store of Berth`;
    assert.throws(() => openDatabase(empty), fault("CONFIG_INVALID", words));
    assert.throws(() => openDatabase(empty, { readOnly: true }), fault("CONFIG_INVALID", words));
  });

  it("opened for reading only, is read and not written", async (t) => {
    const path = join(folder(t), "berth.db");
    await note(open(t, path), "a");
    const database = open(t, path, { readOnly: true });
    assert.deepEqual(notes(database), ["a"]);
    await assert.rejects(
      note(database, "b"),
      fault("STORE_READ_ONLY", `${path} was opened for reading only`),
    );
  });

  it("made by several processes at once, is made once", async (t) => {
    const path = join(folder(t), "berth.db");
    const script = `
      import { openDatabase } from ${JSON.stringify(new URL("./database.ts", import.meta.url).href)};
      const database = openDatabase(${JSON.stringify(path)});
      database.migrate("notes", ${JSON.stringify(NOTES)});
      await database.write((sql) => sql.run("INSERT INTO notes (words) VALUES ('here')"));
      database.close();`;
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], {
        stdio: ["ignore", "ignore", "inherit"],
      }),
    );
    const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
    assert.deepEqual(codes, [0, 0, 0, 0]);
    assert.deepEqual(notes(open(t, path)), ["here", "here", "here", "here"]);
  });
});

describe("database: what killed processes left while they made the file", () => {
  /** What a process has written into its draft when it is killed. */
  function leave(path: string, draft: string, ...files: readonly string[]): void {
    mkdirSync(`${path}.new-${draft}`);
    for (const name of files) writeFileSync(join(`${path}.new-${draft}`, name), "half");
  }

  it("goes once the file is there, and nothing that a person has put there", (t) => {
    const path = join(folder(t), "berth.db");
    leave(path, "a1B2c3", "draft", "draft-wal", "draft-shm");
    leave(path, "zzzzzz");
    leave(path, "copies", "berth.db");
    leave(`${path}.old`, "a1B2c3", "draft");
    leave(path, "a1B2c3-2026", "draft");
    writeFileSync(`${path}.new-backup`, "a backup");
    openDatabase(path).close();
    assert.deepEqual(readdirSync(dirname(path)).sort(), [
      "berth.db",
      "berth.db.new-a1B2c3-2026",
      "berth.db.new-backup",
      "berth.db.new-copies",
      "berth.db.old.new-a1B2c3",
    ]);
  });

  it("is not looked for where the folder cannot be listed, which is logged, and the file is opened", (t) => {
    const path = join(folder(t), "berth.db");
    openDatabase(path).close();
    leave(path, "a1B2c3", "draft");
    const warned: unknown[] = [];
    const log = {
      ...noopLogger,
      warn: (words: string, fields?: LogFields) => void warned.push([words, fields?.["path"]]),
    };
    // root may list any folder, and to be another user for a moment is to be so in every thread
    t.mock.method(fs, "readdirSync", () => {
      throw new Error("EACCES: permission denied, scandir");
    });
    syncBuiltinESMExports();
    openDatabase(path, { log }).close();
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.deepEqual(warned, [["what killed processes have left beside a file is not looked for", path]]);
    openDatabase(path).close();
    assert.deepEqual(readdirSync(dirname(path)), ["berth.db"]);
  });

  it("may be taken from one that is still at it, which opens what is there", (t) => {
    const path = join(folder(t), "berth.db");
    const { linkSync } = fs;
    t.mock.method(fs, "linkSync", (draft: string, name: string) => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
      openDatabase(path).close(); // by another process, as it were
      assert.deepEqual(readdirSync(dirname(path)), ["berth.db"]);
      linkSync(draft, name);
    });
    syncBuiltinESMExports();
    openDatabase(path).close();
    assert.deepEqual(readdirSync(dirname(path)), ["berth.db"]);
  });
});

describe("database: trouble", () => {
  it("gives up on a lock that another process does not let go", async (t) => {
    const path = join(folder(t), "berth.db");
    const database = open(t, path, { busyMs: 20 });
    const other = new DatabaseSync(path);
    t.after(() => other.close());
    other.exec("BEGIN IMMEDIATE");
    const both = await Promise.allSettled([note(database, "a"), note(database, "b")]);
    const message = `${path} stayed locked by another process; end the berthctl or sqlite3 that holds it and try again`;
    for (const result of both) {
      assert.ok(result.status === "rejected");
      fault("TIMED_OUT", message)(result.reason);
    }
    other.exec("ROLLBACK");
    await note(database, "c");
    assert.deepEqual(notes(database), ["c"]);
  });

  it("goes on reading when the disk is full, and writes again when there is room", async (t) => {
    const path = join(folder(t), "berth.db");
    const database = open(t, path);
    await note(database, "kept");
    const pages = database.read((sql) => sql.get("PRAGMA page_count")?.["page_count"]);
    database.read((sql) => sql.get(`PRAGMA max_page_count = ${pages}`));
    await assert.rejects(
      note(database, "x".repeat(20_000)),
      fault(
        "STORE_FULL",
        `the disk under ${path} is full; free some space on it, what was stored before is intact`,
      ),
    );
    assert.deepEqual(notes(database), ["kept"]);
    database.read((sql) => sql.get("PRAGMA max_page_count = 1000000"));
    await note(database, "y");
    assert.deepEqual(notes(database), ["kept", "y"]);
  });

  it("gives every error of SQLite a code, extended ones too", () => {
    const rows: readonly [number, FaultCode][] = [
      [5, "TIMED_OUT"],
      [517, "TIMED_OUT"], // BUSY_SNAPSHOT
      [6, "TIMED_OUT"],
      [8, "STORE_READ_ONLY"],
      [1032, "STORE_READ_ONLY"], // READONLY_DBMOVED
      [10, "STORE_UNAVAILABLE"],
      [1034, "STORE_UNAVAILABLE"], // IOERR_FSYNC
      [11, "STATE_CORRUPT"],
      [13, "STORE_FULL"],
      [14, "STORE_UNAVAILABLE"],
      [26, "STATE_CORRUPT"],
      [19, "INTERNAL"], // CONSTRAINT: a defect here
      [1, "INTERNAL"],
    ];
    for (const [errcode, code] of rows) {
      const error = Object.assign(new Error("said"), { errcode });
      const translated = faultOf(error, "/x/berth.db");
      assert.ok(translated instanceof BerthError);
      assert.deepEqual([errcode, translated.code, translated.cause], [errcode, code, error]);
    }
    const own = new TypeError("a defect");
    assert.equal(faultOf(own, "/x/berth.db"), own);
  });
});
