// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { CleanupStack } from "../../system/shutdown.ts";
import { readStackFile, reviewsSocketOf, stackFileOf } from "../backend/stack-file.ts";
import { announce, ownFolder } from "./data-folder.ts";

const PATHS = { ca: "/c", cert: "/cc", key: "/k", reviews: "/r", node: "n" };

describe("the file that says where the stack of a folder is", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-folder-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Gives what ends it. */
  async function announced(socket: string): Promise<() => Promise<void>> {
    const closers: CleanupStack = [];
    // in a container of its own each has the same process id
    const file = { ...PATHS, pid: 1, webhook: "https://127.0.0.1:1", socket };
    await announce(folder, file, closers);
    return async () => {
      for (const close of closers) await close();
    };
  }

  it("goes with that stack", async () => {
    const end = await announced("/a.sock");
    assert.equal(readStackFile(folder)?.socket, "/a.sock");
    await end();
    assert.equal(readStackFile(folder), undefined);
  });

  it("stays where another one has taken the folder over", async () => {
    const endFirst = await announced("/a.sock");
    const endSecond = await announced("/b.sock");
    await endFirst();
    assert.equal(readStackFile(folder)?.socket, "/b.sock");
    await endSecond();
    assert.equal(readStackFile(folder), undefined);
  });

  it("goes where it cannot be read", async () => {
    const end = await announced("/a.sock");
    writeFileSync(stackFileOf(folder), "{");
    await end();
    assert.equal(readStackFile(folder), undefined);
  });
});

describe("a data folder", () => {
  it("is for one of those that start in one moment, and for the next one when that has ended", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-folder-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const all = Array.from({ length: 4 }, (): CleanupStack => []);
    const got = await Promise.allSettled(all.map((closers) => ownFolder(folder, closers)));
    const refusals = got.flatMap((one) => (one.status === "rejected" ? String(one.reason.message) : []));
    const words = `another berth stack starts or ends on ${folder} at this moment; stop it first, or choose another --data folder`;
    assert.deepEqual(refusals, [words, words, words]);
    for (const close of all.flatMap((closers) => closers.toReversed())) await close();
    const last: CleanupStack = [];
    await ownFolder(folder, last);
    for (const close of last.toReversed()) await close();
  });

  it("is not for a second stack, though the process of the first is not seen: its socket answers", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-folder-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = reviewsSocketOf(folder);
    mkdirSync(dirname(path));
    const first = createServer();
    await new Promise<void>((resolve) => first.listen(path, resolve));
    // as of a container: in this PID namespace the process is none, or another
    await announce(folder, { ...PATHS, pid: process.pid, webhook: "https://127.0.0.1:1", socket: "/a" }, []);
    const closers: CleanupStack = [];
    await assert.rejects(ownFolder(folder, closers), {
      code: "CONFIG_INVALID",
      message: `another berth stack, whose process is not seen from here, listens on ${path}; stop it first (it may be in a container), or choose another --data folder`,
    });
    await new Promise((resolve) => first.close(resolve));
    writeFileSync(path, ""); // one that was killed leaves a socket that nobody listens on
    await ownFolder(folder, closers);
    for (const close of closers) await close();
  });
});
