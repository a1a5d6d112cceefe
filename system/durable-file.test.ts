// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { createDurably, LEFTOVER_MS, removeLeftovers, writeDurably } from "./durable-file.ts";

describe("writeDurably", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-file-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("creates a file with exactly the mode that is asked for", async () => {
    const path = join(folder, "key");
    const umask = process.umask(0o077);
    try {
      await writeDurably(path, "text\n", 0o644);
    } finally {
      process.umask(umask);
    }
    assert.equal(await readFile(path, "utf8"), "text\n");
    assert.equal((await stat(path)).mode & 0o777, 0o644);
  });

  it("replaces a file, its mode too, and never changes the one that others have open", async () => {
    const path = join(folder, "key");
    await writeFile(path, "old", { mode: 0o644 });
    const before = (await stat(path)).ino;
    await writeDurably(path, "new", 0o600);
    assert.equal(await readFile(path, "utf8"), "new");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.notEqual((await stat(path)).ino, before);
    assert.deepEqual(await readdir(folder), ["key"]);
  });

  it("leaves one whole text when two write at a time", async () => {
    const path = join(folder, "key");
    const texts = ["a".repeat(50_000), "b".repeat(50_000)];
    await Promise.all(texts.map((text) => writeDurably(path, text, 0o600)));
    assert.ok(texts.includes(await readFile(path, "utf8")));
    assert.deepEqual(await readdir(folder), ["key"]);
  });

  it("leaves nothing behind when it fails", async () => {
    const path = join(folder, "taken");
    await mkdir(join(path, "inside"), { recursive: true });
    await assert.rejects(writeDurably(path, "text", 0o600), { code: /^(EISDIR|ENOTEMPTY|EEXIST)$/ });
    assert.deepEqual(await readdir(folder), ["taken"]);
    await assert.rejects(writeDurably(join(folder, "no", "key"), "text", 0o600), { code: "ENOENT" });
  });
});

describe("createDurably", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-file-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("creates a file, whole and with its mode, and leaves what has the name", async () => {
    const path = join(folder, "key");
    assert.equal(await createDurably(path, "first", 0o755), true);
    assert.equal((await stat(path)).mode & 0o777, 0o755);
    assert.equal(await createDurably(path, "second", 0o755), false);
    assert.equal(await readFile(path, "utf8"), "first");
    const both = ["a", "b"].map((text) => createDurably(join(folder, "raced"), text, 0o600));
    assert.deepEqual((await Promise.all(both)).sort(), [false, true]);
    assert.deepEqual((await readdir(folder)).sort(), ["key", "raced"]);
    await assert.rejects(createDurably(join(folder, "no", "key"), "text", 0o600), { code: "ENOENT" });
  });
});

describe("removeLeftovers", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-file-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("removes what a write that was cut off has left, once nobody can be writing it any more", async () => {
    const path = join(folder, "key");
    const now = Date.UTC(2026, 0, 1);
    const minute = LEFTOVER_MS + 1_000;
    const [young, ahead, old, future, folders] = Array.from({ length: 5 }, () => `.key.${randomUUID()}.tmp`);
    await mkdir(join(folder, folders ?? ""));
    for (const [name = "", age] of [
      [young, 1_000],
      [ahead, -1_000], // the clock was set back meanwhile, by a little
      [old, minute],
      [future, -minute],
      [folders, minute],
      [`.keys.${randomUUID()}.tmp`, minute],
      [`.key.d.${randomUUID()}.tmp`, minute], // of another file
      [".key.save.tmp", minute], // somebody else's
      [".key", minute],
      ["key", minute],
    ] as const) {
      if (name !== folders) await writeFile(join(folder, name), "text");
      await utimes(join(folder, name), (now - age) / 1_000, (now - age) / 1_000);
    }
    const before = await readdir(folder);
    await removeLeftovers(path, now);
    const left = new Set(await readdir(folder));
    assert.deepEqual(before.filter((name) => !left.has(name)).sort(), [old, future].sort());
    await assert.rejects(removeLeftovers(join(folder, "none/key"), 0), { code: "ENOENT" });
  });
});
