// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { removeLeftoversLater } from "./leftovers.ts";

const END = "0d5e8f6a-1b2c-4d3e-8f90-a1b2c3d4e5f6.tmp";

describe("what a killed agent has left", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-leftovers-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("goes a minute after the next one has started, wherever the agent writes", async () => {
    const clock = new ManualClock();
    const at = (path: string) => join(folder, path);
    const left = [
      `bin/.berth.${END}`,
      `bin/.whereabouts.${END}`,
      `conf/.05-berth.conflist.${END}`,
      `data/.conflist.json.${END}`,
      `run/.agent.sock.journal.${END}`,
    ];
    for (const each of ["bin", "conf", "data", "run"]) await mkdir(at(each));
    for (const each of [...left, `bin/.bridge.${END}`]) {
      await writeFile(at(each), "half");
      await utimes(at(each), clock.now() / 1_000, clock.now() / 1_000);
    }
    const files = [
      ...["bin/berth", "bin/whereabouts", "conf/05-berth.conflist", "data/conflist.json"],
      "run/agent.sock.journal",
    ].map(at);
    const { signal } = new AbortController();
    const removed = removeLeftoversLater(files, { clock, log: noopLogger, signal });
    assert.equal((await readdir(folder, { recursive: true })).length, 4 + left.length + 1);
    clock.advance(61_000);
    await removed;
    const there = await readdir(folder, { recursive: true });
    assert.deepEqual(there.sort(), ["bin", `bin/.bridge.${END}`, "conf", "data", "run"]);
  });

  it("stays where the agent ends before", async () => {
    const clock = new ManualClock();
    await writeFile(join(folder, `.berth.${END}`), "half");
    const stop = new AbortController();
    const removed = removeLeftoversLater([join(folder, "berth")], {
      ...{ clock, log: noopLogger, signal: stop.signal },
    });
    stop.abort();
    await removed;
    assert.deepEqual(await readdir(folder), [`.berth.${END}`]);
  });
});
