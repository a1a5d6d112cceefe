// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { withLock } from "./lock.ts";
import { look } from "./processes.ts";
import { StateFolder } from "./state.ts";

let folder: string;
let state: StateFolder;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-lock-"));
    state = new StateFolder(join(folder, "cluster"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
}

describe("the lock of a cluster", () => {
  setUp();

  it("is held by one at a time", async () => {
    await withLock(state, async () => {
      await assert.rejects(
        withLock(state, async () => undefined),
        /is at work on this cluster/,
      );
    });
    assert.equal(await withLock(state, async () => "mine"), "mine");
  });

  it("goes when the work fails", async () => {
    await assert.rejects(
      withLock(state, () => Promise.reject(new Error("no"))),
      /no/,
    );
    await withLock(state, async () => undefined);
  });

  it("of a process that is gone, or whose pid is another's now, is none", async () => {
    const self = look(process.pid);
    assert.ok(self !== undefined);
    writeFileSync(`${state.path}.lock`, JSON.stringify({ ...self, startTime: "1" }));
    assert.equal(await withLock(state, async () => "mine"), "mine");
  });
});

describe("the state of a cluster", () => {
  setUp();

  it("is added to, whole or not at all, and nothing at first", () => {
    assert.deepEqual(state.read(), { sysctls: {}, machines: [], complete: false });
    state.write({ sysctls: { a: "1" } });
    state.write({ complete: true });
    assert.deepEqual(state.read(), { sysctls: { a: "1" }, machines: [], complete: true });
    state.remove();
    assert.equal(state.exists, false);
  });
});
