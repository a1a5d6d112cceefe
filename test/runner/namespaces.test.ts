// SPDX-License-Identifier: Apache-2.0
// A run in namespaces of its own: whatever its tests leave is seen and ends with it, and nobody else is blamed.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ROOT } from "./files.ts";
import { mountPoints } from "./leftovers.ts";
import { pathsToKeep } from "./namespaces.ts";
import { SuiteRun } from "./run.ts";

const skip = process.getuid?.() === 0 ? false : "needs root";

/** Leaves what bears no mark of its run. */
const LEAVES = `
  import { execFileSync } from "node:child_process";
  import { mkdirSync, mkdtempSync } from "node:fs";
  import { tmpdir } from "node:os";
  import { it } from "node:test";
  it("leaves a network namespace", () => execFileSync("ip", ["netns", "add", "example"]));
  it("leaves mounts", () => {
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", mkdtempSync(tmpdir() + "/berth-mounted-")]);
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", "/mnt"]);
  });
  it("leaves a folder straight in /tmp", () => mkdirSync("/tmp/berth-straight"));
  it("leaves a daemon", () => execFileSync("env", ["-i", "setsid", "-f", "sleep", "2345"], { stdio: "ignore" }));
`;

/** Of every process that is there. */
function commands(): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, "utf8")] : [];
    } catch {
      return []; // it has ended
    }
  });
}

describe("namespaces of a run", () => {
  let folder: string;
  let examples: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-outside-"));
    mkdirSync(join(ROOT, "build"), { recursive: true });
    examples = mkdtempSync(join(ROOT, "build/example-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
    rmSync(examples, { recursive: true });
  });

  async function runOf(source: string, more: NodeJS.ProcessEnv = {}) {
    writeFileSync(join(examples, "a.test.ts"), source);
    // what node's runner tells the processes that it starts would make ours one of them
    // and the report of the run that this test is in may be below /tmp
    const { NODE_TEST_CONTEXT: _, BERTH_EXITS: __, ...env } = process.env;
    const run = new SuiteRun("example", { ...env, ...more, BERTH_REPORT: folder }, { output: "ignore" });
    const files = [relative(ROOT, join(examples, "a.test.ts"))];
    await run.pass({ group: { name: "host", files, isolation: "process" }, files, runs: 1 });
    return (await run.finish()).summary;
  }

  it("name all that is left, and end it", { skip }, async () => {
    const { tests, passed, complaints } = await runOf(LEAVES);
    assert.deepEqual([tests, passed], [4, 4], complaints.join("\n"));
    const said = complaints.map((line) =>
      line.replace(/\d+ sleep/, "PID sleep").replace(/-\w{6}(?=\/|$)/g, "-*"),
    );
    assert.deepEqual(said.map((line) => line.replace(/directory: .*\//, "directory: ")).sort(), [
      "left behind: the network namespace example",
      "left in the temporary directory: berth-mounted-* (1)",
      "left in the temporary directory: berth-straight (1)",
      "left mounted: /mnt",
      "left mounted: /tmp/berth-mounted-*",
      "left running, and killed: PID sleep 2345",
    ]);
    assert.ok(!existsSync("/tmp/berth-straight"));
    assert.ok(!existsSync("/run/netns/example"));
    assert.ok(!mountPoints(readFileSync("/proc/self/mountinfo", "utf8")).includes("/mnt"));
    assert.ok(!commands().some((command) => command.includes("2345")));
    assert.deepEqual(readdirSync(examples), ["a.test.ts"]);
  });

  it("do not blame a run for what others leave meanwhile", { skip }, async () => {
    const other = spawn("sleep", ["5432"], { detached: true, stdio: "ignore" });
    const others = join(folder, "others");
    const source = `
      import { existsSync, statSync } from "node:fs";
      import { it } from "node:test";
      it("waits for the others", async () => {
        while (!existsSync(${JSON.stringify(join(examples, "go"))})) await new Promise((next) => setTimeout(next, 20));
      });`;
    const running = runOf(source);
    mkdirSync(others);
    spawnSync("mount", ["-t", "tmpfs", "tmpfs", others]);
    const name = `n-${process.pid}`;
    spawnSync("ip", ["netns", "add", name]);
    mkdirSync(join(tmpdir(), name));
    try {
      writeFileSync(join(examples, "go"), "");
      assert.deepEqual((await running).complaints, []);
    } finally {
      other.kill();
      spawnSync("umount", [others]);
      spawnSync("ip", ["netns", "del", name]);
      rmSync(join(tmpdir(), name), { recursive: true });
    }
  });

  it("show a run what its variables name below /tmp, to read and to write", { skip }, async () => {
    writeFileSync(join(folder, "config"), "kept");
    const source = `
      import { readdirSync, readFileSync, writeFileSync } from "node:fs";
      import { it } from "node:test";
      it("reads and writes", () => {
        if (readFileSync(process.env.EXAMPLE + "/config", "utf8") !== "kept") throw new Error("another file");
        writeFileSync(process.env.EXAMPLE + "/written", readdirSync("/tmp").join(" "));
      });`;
    const { passed, complaints, failures } = await runOf(source, { EXAMPLE: folder });
    assert.deepEqual([passed, complaints, failures], [1, [], []]);
    const seen = readFileSync(join(folder, "written"), "utf8").split(" ");
    // this repository may be below /tmp itself, and so may the home of whoever runs this
    const kept = pathsToKeep({ ...process.env, EXAMPLE: folder }, [ROOT]).kept.map(
      (path) => path.split("/")[2],
    );
    assert.deepEqual(seen.sort(), [...new Set(kept)].sort());
  });

  it("name what is new beside what its variables name", { skip }, async () => {
    const around = mkdtempSync("/tmp/berth-around-");
    mkdirSync(join(around, "kept"));
    const source = `
      import { mkdirSync } from "node:fs";
      import { it } from "node:test";
      it("leaves a folder", () => mkdirSync(process.env.EXAMPLE + "/../new"));`;
    try {
      const { complaints } = await runOf(source, { EXAMPLE: join(around, "kept") });
      const said = complaints.map((line) =>
        line.replace(/directory: .*\/berth-around-\w+/, "directory: AROUND"),
      );
      assert.deepEqual(said, ["left in the temporary directory: AROUND/new (1)"]);
    } finally {
      rmSync(around, { recursive: true });
    }
  });

  it("hand out what is written where a variable said, which was not there", { skip }, async () => {
    const around = mkdtempSync("/tmp/berth-around-");
    const output = join(around, "results", "figures.json");
    const source = `
      import { writeFileSync } from "node:fs";
      import { it } from "node:test";
      it("writes", () => writeFileSync(process.env.OUTPUT, "42"));`;
    try {
      const { passed, complaints, failures } = await runOf(source, {
        OUTPUT: output,
        UNUSED: join(around, "x"),
      });
      assert.deepEqual([passed, complaints, failures], [1, [], []]);
      assert.equal(readFileSync(output, "utf8"), "42");
      assert.deepEqual(readdirSync(around), ["results"]);
    } finally {
      rmSync(around, { recursive: true });
    }
  });

  it("keep each path once, and nothing that is not below /tmp", () => {
    const env = {
      HOME: folder,
      CACHE: join(folder, "inner"),
      PATH: `/usr/bin:${examples}`,
      TMPDIR: "/tmp/of-somebody",
      ABSENT: "/tmp/nobody-has-this",
      ROUND: `${folder}/../x`,
    };
    mkdirSync(join(folder, "inner"));
    const kept = [folder, examples].filter((path) => path.startsWith("/tmp/")).sort();
    assert.deepEqual(pathsToKeep(env, [folder]), { kept, absent: ["/tmp/nobody-has-this"] });
  });
});
