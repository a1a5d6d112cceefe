// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Logger, noopLogger } from "../../../allocator/base/ports.ts";
import { eventLoopTurns } from "../../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { SmallDisk, skipWithoutMount } from "../../../test/crash/small-disk.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { InstalledPlugin } from "./installed-plugin.ts";

const NEW = "#!new\nCNI berth plugin version 0.2.0\n";
const OLD = "#!old\nCNI berth plugin version 0.1.0\n";
const EXECUTABLE = { mode: 0o755 };

describe("a host's folder without room for the plugin", await skipWithoutMount(), () => {
  let folder: string;
  let host: string;
  let disk: SmallDisk | undefined;
  let clock: ManualClock;
  let logged: string[];
  let opened: InstalledPlugin | undefined;
  /** The agent was told to end. */
  let ending: AbortController;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-plugin-"));
    host = join(folder, "bin");
    await mkdir(host);
    await writeFile(join(folder, "built"), NEW);
    disk = await SmallDisk.over(host);
    clock = new ManualClock();
    logged = [];
    opened = undefined;
    ending = new AbortController();
  });
  afterEach(async () => {
    await opened?.close();
    await disk?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const note = (message: string) => void logged.push(message);
  const log: Logger = { ...noopLogger, info: note, error: note };
  const open = async (replace: boolean, ...names: readonly string[]) => {
    const aliases = { names, replace };
    const from = join(folder, "built");
    opened = await InstalledPlugin.open({ from, folder: host, aliases, clock, log, signal: ending.signal });
    return opened;
  };
  const textOf = (name: string) => readFile(join(host, name), "utf8");
  const passes = (plugin: InstalledPlugin, failing: boolean) =>
    eventually("it was tried again", () => {
      clock.advance(5_000);
      return (plugin.failing !== undefined) === failing ? true : undefined;
    });

  it("has the one that is there until there is room", async () => {
    await writeFile(join(host, "berth"), OLD, EXECUTABLE);
    disk?.fill();
    const plugin = await open(false);
    assert.equal(plugin.isServed, true);
    assert.match(plugin.failing ?? "", /^BERTH_CNI_BIN \/.* cannot be written: ENOSPC/);
    for (let again = 0; again < 3; again++) await passes(plugin, true);
    assert.deepEqual([await textOf("berth"), (await readdir(host)).sort()], [OLD, ["berth", "filler"]]);
    disk?.free();
    await passes(plugin, false);
    assert.deepEqual([await textOf("berth"), plugin.isServed], [NEW, true]);
    assert.deepEqual(logged, [
      "the CNI plugin cannot be replaced; pods are served with the one that is there",
      "CNI plugin installed",
    ]);
  });

  it("is waited for where there is none, or none that can be run", async () => {
    await writeFile(join(host, "berth"), OLD, EXECUTABLE);
    for (const spoil of [() => chmod(join(host, "berth"), 0o644), () => rm(join(host, "berth"))]) {
      await spoil();
      disk?.fill();
      const plugin = await open(false);
      assert.equal(plugin.isServed, false);
      disk?.free();
      await passes(plugin, false);
      assert.deepEqual([await textOf("berth"), plugin.isServed], [NEW, true]);
      await plugin.close();
    }
    assert.equal(logged[0], "the CNI plugin cannot be installed; no pod can start with it");
  });

  it("is waited for under each other name that nothing serves, and one that is installed is not told again", async () => {
    await writeFile(join(host, "berth"), NEW, EXECUTABLE);
    await writeFile(join(host, "antrea"), "#!theirs\n", EXECUTABLE);
    disk?.fill();
    const plugin = await open(false, "antrea", "whereabouts");
    assert.equal(plugin.isServed, false);
    disk?.free();
    await passes(plugin, false);
    assert.deepEqual([await textOf("whereabouts"), await textOf("antrea")], [NEW, "#!theirs\n"]);
    const stays = "a CNI plugin of this name is installed, and stays";
    assert.equal(logged.filter((one) => one === stays).length, 1);
  });

  it("has another system's plugin until it can be put aside", async () => {
    await writeFile(join(host, "berth"), NEW, EXECUTABLE);
    await writeFile(join(host, "antrea"), "#!theirs\n", EXECUTABLE);
    disk?.fill();
    const plugin = await open(true, "antrea");
    assert.deepEqual([plugin.isServed, await textOf("antrea")], [false, "#!theirs\n"]);
    disk?.free();
    await passes(plugin, false);
    assert.deepEqual([await textOf("antrea"), await textOf("antrea.before-berth")], [NEW, "#!theirs\n"]);
  });

  it("is not tried any more once the agent was told to end, however long that takes", async () => {
    disk?.fill();
    const plugin = await open(false);
    ending.abort();
    disk?.free();
    for (let again = 0; again < 3; again++) {
      clock.advance(5_000);
      await eventLoopTurns();
    }
    assert.equal(clock.sleeping, 0);
    assert.deepEqual([plugin.isServed, await readdir(host)], [false, []]);
  });

  it("is told of once, whatever its temporary file was called", async () => {
    const long = "a".repeat(250); // which has no room for more
    await writeFile(join(host, long), OLD, EXECUTABLE);
    const plugin = await open(false, long);
    assert.equal(plugin.isServed, true);
    assert.match(
      plugin.failing ?? "",
      /^BERTH_CNI_BIN \/.*\/bin cannot be written: ENAMETOOLONG: name too long$/,
    );
    const whyBefore = plugin.failing;
    for (let again = 0; again < 3; again++) await passes(plugin, true);
    assert.equal(plugin.failing, whyBefore);
  });

  it("ends a start where it is wrong for another reason and there is none, and none where there is one", async () => {
    await disk?.remount("ro");
    await assert.rejects(open(false), { code: "CONFIG_INVALID", message: /is read-only/ });
    await disk?.remount("rw");
    await writeFile(join(host, "berth"), OLD, EXECUTABLE);
    await disk?.remount("ro");
    const plugin = await open(false);
    assert.equal(plugin.isServed, true);
    await disk?.remount("rw");
    await passes(plugin, false);
    assert.equal(await textOf("berth"), NEW);
  });
});
