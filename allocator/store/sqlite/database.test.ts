// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { noopLogger } from "../../base/ports.ts";
import { coded, fault, folder, NOTES, note, notes, open } from "../testing/notes.ts";

describe("database: group commit", () => {
  it("puts the writes of one turn into one commit, in order, and answers each", async (t) => {
    let commits = 0;
    const database = open(t, ":memory:", { beforeCommit: () => commits++ });
    const ids = await Promise.all(Array.from({ length: 100 }, (_, i) => note(database, `n${i}`)));
    assert.equal(commits, 1);
    assert.deepEqual(
      ids,
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    assert.equal(notes(database)[99], "n99");
  });

  it("answers only after the commit, when another connection sees the write", async (t) => {
    const path = join(folder(t), "berth.db");
    const database = open(t, path);
    const other = open(t, path);
    const written = note(database, "a");
    assert.deepEqual(notes(database), []);
    await written;
    assert.deepEqual(notes(other), ["a"]);
  });

  it("undoes a work that throws, and nothing of its neighbours", async (t) => {
    const database = open(t, ":memory:");
    const thrown = new Error("changed my mind");
    const results = await Promise.allSettled([
      note(database, "before"),
      database.write((sql) => {
        sql.run("INSERT INTO notes (words) VALUES ('half')");
        throw thrown;
      }),
      note(database, "after"),
    ]);
    assert.deepEqual(results, [
      { status: "fulfilled", value: 1 },
      { status: "rejected", reason: thrown },
      { status: "fulfilled", value: 2 },
    ]);
    assert.deepEqual(notes(database), ["before", "after"]);
  });

  it("undoes a work that throws and that has no neighbours", async (t) => {
    const database = open(t, ":memory:");
    const thrown = new Error("changed my mind");
    const half = database.write((sql) => {
      sql.run("INSERT INTO notes (words) VALUES ('half')");
      throw thrown;
    });
    await assert.rejects(half, (error) => error === thrown);
    assert.deepEqual(notes(database), []);
    await note(database, "whole");
    assert.deepEqual(notes(database), ["whole"]);
  });

  it("has no savepoint around a work that has no neighbours", async (t) => {
    const database = open(t, ":memory:");
    const isOpen = (name: string) =>
      database.write((sql) => {
        try {
          sql.run(`RELEASE ${name}`);
          return true;
        } catch {
          return false;
        }
      });
    assert.equal(await isOpen("work"), false);
  });

  it("keeps nothing of a batch whose commit fails, and goes on with the next", async (t) => {
    let fail: Error | undefined = new Error("power cut");
    const database = open(t, ":memory:", {
      beforeCommit: () => {
        if (fail !== undefined) throw fail;
      },
    });
    const own = new Error("own fault");
    const results = await Promise.allSettled([
      note(database, "a"),
      database.write(() => {
        throw own;
      }),
      note(database, "b"),
    ]);
    const reasons = results.map((result) => (result.status === "rejected" ? result.reason : "kept"));
    assert.deepEqual(reasons, [fail, own, fail]);
    assert.deepEqual(notes(database), []);
    fail = undefined;
    await note(database, "c");
    assert.deepEqual(notes(database), ["c"]);
  });

  it("tells listeners of each commit, until they stop listening", async (t) => {
    const database = open(t, ":memory:");
    let heard = 0;
    const stop = database.onCommit(() => heard++);
    await Promise.all([note(database, "a"), note(database, "b")]);
    assert.equal(heard, 1);
    stop();
    await note(database, "c");
    assert.equal(heard, 1);
  });

  it("commits what is queued when it is closed, and then refuses", async (t) => {
    const path = join(folder(t), "berth.db");
    const database = open(t, path);
    const queued = note(database, "last words");
    database.close();
    database.close();
    assert.equal(await queued, 1);
    assert.deepEqual(notes(open(t, path)), ["last words"]);
    await assert.rejects(note(database, "too late"), fault("STORE_UNAVAILABLE", `${path} is closed`));
    assert.throws(() => notes(database), fault("STORE_UNAVAILABLE", `${path} is closed`));
  });

  it("logs a commit that took longer than a second", async (t) => {
    const logged: unknown[] = [];
    let now = 0;
    const clock = { now: () => 0, monotonic: () => (now += 1_500), sleep: async () => undefined };
    const log = { ...noopLogger, warn: (...said: unknown[]) => logged.push(said) };
    await note(open(t, ":memory:", { clock, log }), "a");
    assert.deepEqual(logged, [["store took long to commit", { ms: 1_500 }]]);
  });
});

describe("database: reading", () => {
  it("sees one moment in a read, whatever another connection commits meanwhile", async (t) => {
    const path = join(folder(t), "berth.db");
    const [database, other] = [open(t, path), new DatabaseSync(path)];
    t.after(() => other.close());
    await note(database, "a");
    const counts = database.read((sql) => {
      const count = () => sql.get("SELECT count(*) AS n FROM notes")?.["n"];
      const before = count();
      other.exec("INSERT INTO notes (words) VALUES ('b')");
      return [before, count()];
    });
    assert.deepEqual(counts, [1, 1]);
    assert.deepEqual(notes(database), ["a", "b"]);
  });

  it("keeps a snapshot as it was when it was taken", async (t) => {
    const database = open(t, join(folder(t), "berth.db"));
    await note(database, "a");
    const snapshot = database.snapshot();
    assert.ok(snapshot);
    await note(database, "b");
    assert.equal(snapshot.all("SELECT * FROM notes").length, 1);
    snapshot.close();
    assert.equal(notes(database).length, 2);
    assert.equal(open(t, ":memory:").snapshot(), undefined);
  });

  it("changes its data version for the commits of others alone", async (t) => {
    const path = join(folder(t), "berth.db");
    const [database, other] = [open(t, path), open(t, path)];
    const first = database.dataVersion();
    await note(database, "own");
    assert.equal(database.dataVersion(), first);
    await note(other, "other's");
    assert.notEqual(database.dataVersion(), first);
  });
});

describe("database: schema", () => {
  it("takes each step once, and only the new ones later", (t) => {
    const path = join(folder(t), "berth.db");
    const steps = ["CREATE TABLE a (x TEXT) STRICT", "INSERT INTO a VALUES ('once')"];
    open(t, path).migrate("part", steps);
    const again = open(t, path);
    again.migrate("part", steps);
    again.migrate("part", [...steps, "INSERT INTO a VALUES ('third')"]);
    assert.deepEqual(
      again.read((sql) => sql.all("SELECT x FROM a").map((row) => row["x"])),
      ["once", "third"],
    );
  });

  it("keeps nothing of steps of which one fails", (t) => {
    const database = open(t, ":memory:");
    assert.throws(() => database.migrate("part", ["CREATE TABLE a (x TEXT)", "NONSENSE"]), coded("INTERNAL"));
    database.migrate("part", ["CREATE TABLE a (x TEXT)"]);
  });

  it("keeps nothing of several parts when one of them fails or is a newer Berth's", (t) => {
    const database = open(t, join(folder(t), "berth.db"));
    const first = { name: "first", steps: ["CREATE TABLE a (x TEXT)"] };
    const bad = { name: "bad", steps: ["NONSENSE"] };
    assert.throws(() => database.migrateAll([first, bad]), coded("INTERNAL"));
    assert.throws(() => database.migrateAll([first, { name: "notes", steps: [] }]), coded("CONFIG_INVALID"));
    database.migrateAll([first, { name: "second", steps: ["INSERT INTO a VALUES ('of the first')"] }]);
  });

  it("takes further steps of tables that are locked, and stays locked to who does not know of that", async (t) => {
    const path = join(folder(t), "berth.db");
    const steps = ["CREATE TABLE a (x TEXT) STRICT"];
    const database = open(t, path);
    database.migrate("part", steps);
    await database.write((sql) => sql.run("UPDATE schemas SET version = version + 100 WHERE name = 'part'"));
    const again = open(t, path);
    again.migrate("part", steps, 100);
    again.migrate("part", [...steps, "CREATE TABLE b (x TEXT) STRICT"], 100);
    assert.throws(() => again.migrate("part", [...steps, "SELECT 1"]), coded("CONFIG_INVALID"));
    assert.throws(() => again.migrate("part", steps, 100), coded("CONFIG_INVALID"));
  });

  it("refuses tables that a newer Berth made", (t) => {
    const path = join(folder(t), "berth.db");
    const database = open(t, path);
    assert.throws(
      () => database.migrate("notes", []),
      fault(
        "CONFIG_INVALID",
        `${path} was written by a newer Berth (notes 1, this one knows 0); upgrade this one, or give it another file`,
      ),
    );
  });

  it("does not bring a file up to date that is open for reading only", (t) => {
    const path = join(folder(t), "berth.db");
    open(t, path).close();
    const database = open(t, path, { readOnly: true });
    database.migrate("notes", NOTES);
    assert.throws(
      () => database.migrate("more", ["CREATE TABLE a (x TEXT)"]),
      fault("STORE_READ_ONLY", `${path} was not brought up to date yet (more); start Berth on it once`),
    );
  });
});
