// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { type Logger, noopLogger } from "../../../allocator/base/ports.ts";
import { createClock } from "../../../system/clock.ts";
import { installAliases, installConflist, installPlugin, prepareConflist } from "./plugin-binary.ts";

const clock = createClock();
/** A second of the past that every temporary file is older than which is not a process's own any more. */
const LONG_AGO = 1_000_000;

let folder: string;
let host: string;
let logged: string[];
const log: Logger = { ...noopLogger, info: (message) => logged.push(message) };
const install = (from = join(folder, "built"), to = host) =>
  installPlugin({ from, folder: to }, { clock, log });

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-install-"));
    host = join(folder, "bin");
    logged = [];
    await mkdir(host);
    await writeFile(join(folder, "built"), "#!new\n");
  });
  afterEach(() => rm(folder, { recursive: true }));
}

async function words(failing: Promise<unknown>): Promise<string> {
  const error: unknown = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof BerthError
    ? `${error.code}: ${error.message.replaceAll(folder, "")}`
    : String(error);
}

describe("the plugin's installation", () => {
  setUp();

  it("leaves an executable whatever the umask, and nothing else", async () => {
    const umask = process.umask(0o077);
    try {
      await install();
    } finally {
      process.umask(umask);
    }
    assert.equal(await readFile(join(host, "berth"), "utf8"), "#!new\n");
    assert.equal((await stat(join(host, "berth"))).mode & 0o777, 0o755);
    assert.deepEqual(await readdir(host), ["berth"]);
    assert.deepEqual(logged, ["CNI plugin installed"]);
  });

  it("replaces one that is running, which goes on", async () => {
    const old = join(host, "berth");
    await copyFile("/bin/sleep", old);
    await chmod(old, 0o755);
    const running: ChildProcess = spawn(old, ["60"], { stdio: "ignore" });
    try {
      await once(running, "spawn");
      await assert.rejects(writeFile(old, "in place"), { code: "ETXTBSY" });
      await install();
      assert.equal(await readFile(old, "utf8"), "#!new\n");
      assert.deepEqual([running.exitCode, running.signalCode], [null, null]);
    } finally {
      running.kill("SIGKILL");
      await once(running, "exit");
    }
  });

  it("leaves one that is the same alone, and mends one that nobody may execute", async () => {
    await install();
    const { ino } = await stat(join(host, "berth"));
    await install();
    assert.equal((await stat(join(host, "berth"))).ino, ino);
    await chmod(join(host, "berth"), 0o644);
    await install();
    assert.equal((await stat(join(host, "berth"))).mode & 0o777, 0o755);
    assert.equal(logged.length, 2);
  });

  it("removes what a crash left behind, and nothing of anybody else", async () => {
    const [crashed, young, others] = [
      `.berth.${randomUUID()}.tmp`,
      `.berth.${randomUUID()}.tmp`,
      `.bridge.${randomUUID()}.tmp`,
    ];
    const old = [crashed, others, "bridge", ".berth.conf", ".berth.save.tmp"];
    for (const name of [...old, young]) await writeFile(join(host, name), "half");
    for (const name of old) await utimes(join(host, name), LONG_AGO, LONG_AGO);
    await install();
    assert.deepEqual(
      (await readdir(host)).sort(),
      // one was just written, by another agent perhaps
      [young, ".berth.conf", ".berth.save.tmp", others, "berth", "bridge"].sort(),
    );
  });

  it("says what is wrong with the folders", async () => {
    await mkdir(join(folder, "taken/berth/inside"), { recursive: true });
    assert.deepEqual(
      [
        await words(install(join(folder, "none"))),
        await words(install(undefined, join(folder, "none"))),
        await words(install(undefined, join(folder, "built"))),
        await words(
          prepareConflist(
            { from: "/cm/a.conflist", folder: join(folder, "none"), record: join(folder, "a.json") },
            clock,
          ),
        ),
      ],
      [
        "CONFIG_INVALID: BERTH_CNI_BINARY /none cannot be read: ENOENT: no such file or directory, open '/none'",
        "CONFIG_INVALID: BERTH_CNI_BIN /none is no folder here; mount the host's folder there",
        "CONFIG_INVALID: BERTH_CNI_BIN /built is no folder here; mount the host's folder there",
        "CONFIG_INVALID: BERTH_CNI_CONF /none is no folder here; mount the host's folder there",
      ],
    );
    assert.match(
      await words(install(undefined, join(folder, "taken"))),
      /^CONFIG_INVALID: BERTH_CNI_BIN \/taken cannot be written: E/,
    );
    assert.deepEqual(await readdir(join(folder, "taken")), ["berth"]);
  });
});

describe("other names of the plugin", () => {
  setUp();

  const NEW = "#!new\nCNI berth plugin version 0.2.0\n";
  const OLD = "#!old\nCNI berth plugin version 0.1.0\n";
  beforeEach(() => writeFile(join(folder, "built"), NEW));

  const alias = (replace: boolean, ...names: readonly string[]) =>
    installAliases(
      { from: join(folder, "built"), folder: host },
      { names, replace },
      { clock, log: { ...log, error: (message) => logged.push(message) } },
    );
  const textOf = (name: string) => readFile(join(host, name), "utf8");
  const isFile = async (name: string) => (await lstat(join(host, name))).isFile();

  it("are copies of it, made once", async () => {
    await install();
    await alias(false, "whereabouts", "antrea");
    await alias(false, "whereabouts", "antrea");
    assert.deepEqual((await readdir(host)).sort(), ["antrea", "berth", "whereabouts"]);
    assert.deepEqual([await textOf("whereabouts"), await isFile("whereabouts")], [NEW, true]);
    assert.equal((await stat(join(host, "whereabouts"))).mode & 0o777, 0o755);
    assert.equal(logged.length, 3);
  });

  it("leave the plugin as it is when another's installer writes over them, and each other", async () => {
    await install();
    await symlink("berth", join(host, "antrea")); // as it was made before
    await link(join(host, "berth"), join(host, "spiderpool")); // by hand
    await alias(false, "whereabouts", "antrea", "static", "spiderpool");
    // as `cp` does, which opens what is there
    for (const name of ["whereabouts", "antrea", "spiderpool"])
      await writeFile(join(host, name), "#!theirs\n");
    assert.deepEqual([await textOf("berth"), await textOf("static")], [NEW, NEW]);
  });

  it("become the new version, whether links or copies, and are not put aside for it", async () => {
    await install();
    await writeFile(join(host, "whereabouts"), OLD);
    await symlink("berth", join(host, "antrea"));
    await symlink(join(host, "whereabouts"), join(host, "static"));
    for (const replace of [false, true]) await alias(replace, "whereabouts", "antrea", "static");
    for (const name of ["whereabouts", "antrea", "static"])
      assert.deepEqual([await textOf(name), await isFile(name)], [NEW, true], name);
    assert.deepEqual((await readdir(host)).sort(), ["antrea", "berth", "static", "whereabouts"]);
  });

  it("leave a plugin that is there, and what a link leads to, as they are, and say so", async () => {
    await install();
    await writeFile(join(host, "whereabouts"), "#!theirs\n");
    await symlink("whereabouts", join(host, "antrea"));
    await symlink("nowhere", join(host, "static"));
    await alias(false, "whereabouts", "antrea", "static", "spiderpool");
    assert.equal(await textOf("whereabouts"), "#!theirs\n");
    assert.equal(await readlink(join(host, "antrea")), "whereabouts");
    assert.equal(await readlink(join(host, "static")), "nowhere");
    assert.equal(await textOf("spiderpool"), NEW);
    assert.equal(
      logged.filter((one) => one === "a CNI plugin of this name is installed, and stays").length,
      3,
    );
  });

  it("put it aside if that is said, once for each that comes", async () => {
    await install();
    for (const theirs of ["#!theirs\n", "#!newer\n"]) {
      await rm(join(host, "whereabouts"), { force: true });
      await writeFile(join(host, "whereabouts"), theirs);
      for (let again = 0; again < 2; again++) await alias(true, "whereabouts");
      assert.equal(await textOf("whereabouts"), NEW);
      assert.equal(await textOf("whereabouts.before-berth"), theirs);
    }
    assert.deepEqual((await readdir(host)).sort(), ["berth", "whereabouts", "whereabouts.before-berth"]);
  });
});

describe("the conflist's installation", () => {
  setUp();

  it("writes it for root alone, under its own name, and only if it is another", async () => {
    const conflist = { from: "/cm/05-berth.conflist", folder: host };
    await writeFile(join(host, "05-berth.conflist"), "one of before", { mode: 0o644 });
    assert.equal(await installConflist(conflist, "{}"), true);
    const { ino, mode } = await stat(join(host, "05-berth.conflist"));
    assert.equal(mode & 0o777, 0o600);
    assert.equal(await installConflist(conflist, "{}"), false);
    assert.equal((await stat(join(host, "05-berth.conflist"))).ino, ino);
    assert.deepEqual(await readdir(host), ["05-berth.conflist"]);
  });
});
