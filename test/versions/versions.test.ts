// SPDX-License-Identifier: Apache-2.0
// The last released version and this one on one file, each after the other: an upgrade, and a way back.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, it } from "node:test";
import { promisify } from "node:util";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { textColumn } from "../../allocator/store/sqlite/sql.ts";
import { BASELINE, BEFORE_SINGLES, checkOutBaseline } from "./baseline.ts";

const run = promisify(execFile);
const NEW = resolve(import.meta.dirname, "../..");
const ACT = join(import.meta.dirname, "act.ts");

const baseline = await checkOutBaseline();
const skip = "why" in baseline ? baseline.why : false;
const old = "root" in baseline ? baseline.root : "";

/** What a version after this one may have written, into every part of a record. */
const FUTURE: Readonly<Record<string, unknown>> = {
  "$.record.vlan": 7,
  "$.record.identity.cluster": "east",
  "$.record.retention.limit": 3,
  "$.record.retention.whenDeleted": "Archive",
  "$.record.status.seen": true,
  "$.record.status.phase": "Quarantined",
};

describe(`beside ${BASELINE}, the last released version`, { skip }, () => {
  const folders: string[] = [];
  after(async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
    if ("root" in baseline) await baseline.remove();
  });

  async function file(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "berth-versions-"));
    folders.push(folder);
    return join(folder, "berth.db");
  }

  const by = (root: string, path: string, act: string) => run(process.execPath, [ACT, root, path, act]);

  /** The stored text of the only record of that kind, parsed. */
  function stored(path: string, kind: string): Readonly<Record<string, unknown>> | undefined {
    const database = openDatabase(path, { readOnly: true });
    try {
      const row = database.read((sql) => sql.get("SELECT body FROM records WHERE kind = ?", kind));
      return row && JSON.parse(textColumn(row, "body")).record;
    } finally {
      database.close();
    }
  }

  async function writeFuture(path: string): Promise<void> {
    const database = openDatabase(path);
    for (const [at, value] of Object.entries(FUTURE)) {
      const set = "UPDATE records SET body = json_set(body, ?, json(?)) WHERE kind = 'claim'";
      await database.write((sql) => sql.run(set, at, JSON.stringify(value)));
    }
    await database.write((sql) =>
      sql.run("UPDATE records SET body = json_set(body, '$.record.lease', 'l1') WHERE kind = 'reservation'"),
    );
    database.close();
  }

  it("reads, binds and releases what that one wrote", async () => {
    const path = await file();
    await by(old, path, "write");
    await by(NEW, path, "serve");
    await by(old, path, "serve").catch(() => assert.fail("the older one cannot go on"));
    await by(NEW, path, "release");
    assert.equal(stored(path, "claim"), undefined);
    assert.notEqual(stored(path, "reservation")?.["releasedAt"], undefined);
  });

  it("lets that one, which knows of no blocks, read a journal with addresses that were given back, and one that would give them again not", async (t) => {
    const between = await checkOutBaseline(BEFORE_SINGLES);
    if ("why" in between) return t.skip(between.why);
    t.after(between.remove);
    const path = await file();
    await by(NEW, path, "write");
    await by(between.root, path, "serve");
    await by(NEW, path, "part");
    await assert.rejects(by(between.root, path, "serve"), /was written by a newer Berth/);
    await by(old, path, "serve").catch(() => assert.fail("the older one cannot go on"));
    await by(NEW, path, "release");
  });

  it("is read, bound and released by that one, which keeps what only later versions know", async () => {
    const path = await file();
    await by(NEW, path, "write");
    await writeFuture(path);
    await by(old, path, "serve");
    const claim = stored(path, "claim");
    assert.deepEqual(
      [claim?.["vlan"], claim?.["identity"], claim?.["retention"]],
      [
        7,
        { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", cluster: "east" },
        { whenDeleted: "Archive", whenScaled: "Retain", ttlMs: null, limit: 3 },
      ],
    );
    assert.match(JSON.stringify(claim?.["status"]), /"seen":true/);
    await by(NEW, path, "serve");
    await by(old, path, "release");
    assert.equal(stored(path, "claim"), undefined);
    assert.equal(stored(path, "reservation")?.["lease"], "l1");
  });
});
