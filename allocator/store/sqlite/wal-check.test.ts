// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { runsOf } from "../../../test/support/runs.ts";
import { openDatabase } from "./database.ts";
import { isDamaged } from "./wal-check.ts";

const HEADER = 32;
const FRAME = 24 + 4096;

describe("a write-ahead log", () => {
  let folder: string;
  let path: string;
  let log: Buffer;
  /** Of each transaction the offset behind its last frame. */
  let ends: readonly number[];
  /** Where the last two transactions begin: up to here damage can be told from a crash. */
  let certain: number;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "berth-wal-"));
    path = join(folder, "berth.db");
    const database = openDatabase(path);
    database.migrate("notes", ["CREATE TABLE notes (text TEXT NOT NULL) STRICT"]);
    for (let i = 0; i < 30; i++) {
      await database.write((sql) =>
        sql.run("INSERT INTO notes (text) VALUES (?)", "x".repeat(300 * (i % 20))),
      );
    }
    log = readFileSync(`${path}-wal`);
    database.close();
    const frames = Array.from({ length: (log.length - HEADER) / FRAME }, (_, i) => HEADER + i * FRAME);
    ends = frames.filter((at) => log.readUInt32BE(at + 4) !== 0).map((at) => at + FRAME);
    certain = ends.at(-3) ?? 0;
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  function changedAt(at: number, by = 1): Buffer {
    const changed = Buffer.from(log);
    changed.writeUInt8(changed.readUInt8(at) ^ by, at);
    return changed;
  }

  it("is whole as SQLite writes it, and empty before it does", () => {
    assert.ok(ends.length > 30);
    assert.equal(isDamaged(log), false);
    assert.equal(isDamaged(Buffer.alloc(0)), false);
    assert.equal(isDamaged(log.subarray(0, HEADER)), false);
  });

  it("is damaged when a bit changed in anything but the last two transactions", () => {
    for (let at = 0; at < HEADER; at++) assert.equal(isDamaged(changedAt(at)), true, `header, byte ${at}`);
    const where = fc.nat({ max: certain - HEADER - 1 }).map((n) => n + HEADER);
    const bit = fc.nat({ max: 7 });
    fc.assert(
      fc.property(where, bit, (at, n) => assert.equal(isDamaged(changedAt(at, 1 << n)), true)),
      { numRuns: runsOf(300) },
    );
  });

  it("is not when it ends anywhere, or when its last transaction was torn", () => {
    fc.assert(
      fc.property(fc.nat({ max: log.length }), (end) => {
        assert.equal(isDamaged(log.subarray(0, end)), false);
      }),
      { numRuns: runsOf(300) },
    );
    const [begin = 0, end = 0] = ends.slice(-2);
    fc.assert(
      fc.property(fc.uint8Array({ minLength: end - begin, maxLength: end - begin }), (torn) => {
        assert.equal(isDamaged(Buffer.concat([log.subarray(0, begin), torn])), false);
      }),
      { numRuns: runsOf(100) },
    );
  });

  it("is not when frames of before it began anew are left in it", async () => {
    const again = openDatabase(path);
    for (let i = 0; i < 3; i++) {
      await again.write((sql) => {
        for (let n = 0; n < 10; n++) sql.run("INSERT INTO notes (text) VALUES (?)", "y".repeat(4000));
      });
    }
    const old = readFileSync(`${path}-wal`);
    again.close();
    const young = openDatabase(path);
    await young.write((sql) => sql.run("INSERT INTO notes (text) VALUES ('z')"));
    const fresh = readFileSync(`${path}-wal`);
    young.close();
    assert.ok(fresh.length < old.length);
    const mixed = Buffer.concat([fresh, old.subarray(fresh.length)]);
    assert.equal(isDamaged(mixed), false);
  });

  it("that is damaged is not opened, and the file beside it stays as it was", () => {
    const broken = join(folder, "broken.db");
    writeFileSync(broken, readFileSync(path));
    writeFileSync(`${broken}-wal`, changedAt(HEADER + FRAME + 500));
    const words = `${broken} is damaged (its -wal has lost commits that were safe on the disk); stop Berth, move it away together with its -wal and -shm, and put a backup in its place (sqlite3's .recover saves what can still be read)`;
    assert.throws(() => openDatabase(broken), { code: "STATE_CORRUPT", message: words });
    assert.deepEqual(readFileSync(`${broken}-wal`), changedAt(HEADER + FRAME + 500));
  });
});
