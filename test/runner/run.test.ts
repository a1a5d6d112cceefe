// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";
import { isGreen, type Summary } from "./results.ts";
import { SuiteRun } from "./run.ts";

const ENDLESS = "test/runner/examples/endless.ts";

/** A run that goes on until it is killed. */
const KILLED = `
  import { SuiteRun } from "./test/runner/run.ts";
  const [isolation, file] = process.argv.slice(1);
  const group = { name: "host", files: [file], isolation };
  await new SuiteRun("example", process.env, { output: "ignore" }).pass({ group, files: [file], runs: 1 });
`;

/** Of every process that this one may look into, its variables. */
function environments(): readonly (readonly string[])[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")] : [];
    } catch {
      return [];
    }
  });
}

const hasMark = (variables: readonly string[]) =>
  variables.some((pair) => pair.startsWith("BERTH_RUN=") && pair !== `BERTH_RUN=${process.env["BERTH_RUN"]}`);

/** Without what node's runner tells the processes that it starts, which would make ours one of them. */
function own(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, BERTH_SEED: _seed, ...env } = process.env;
  return env;
}

interface More {
  readonly env?: NodeJS.ProcessEnv;
  readonly options?: { readonly isApart: boolean };
  readonly globalSetup?: string | undefined;
  readonly first?: readonly string[];
  /** Only tests whose name matches. */
  readonly test?: string;
  /** It is interrupted once a test of its first file is under way. */
  readonly isInterrupted?: true;
}

describe("a run of a suite", () => {
  let report: string;
  beforeEach(() => {
    report = mkdtempSync(join(tmpdir(), "berth-report-"));
  });
  afterEach(() => rmSync(report, { recursive: true }));

  async function runOf(name: string | readonly string[], isolation: "none" | "process", more: More = {}) {
    const run = new SuiteRun(
      "example",
      { ...own(), ...more.env, BERTH_REPORT: report },
      { output: "ignore", ...more.options },
    );
    const files = [name].flat().map((file) => `test/runner/examples/${file}`);
    const { globalSetup, first = [] } = more;
    const setUp = globalSetup === undefined ? {} : { globalSetup: `test/runner/examples/${globalSetup}` };
    const group = { name: "host", files, isolation, first, ...setUp };
    const passing = run.pass({ group, files, runs: 1, name: more.test });
    if (more.isInterrupted === true) {
      const begun = `"kind":"begun","file":"${join(ROOT, files[0] ?? "")}"`;
      const told = () => readdirSync(report).map((file) => readFileSync(join(report, file), "utf8"));
      while (!told().some((text) => text.includes(begun))) await pause(50);
      run.interrupt("SIGINT");
    }
    const isPassed = await passing;
    return { isPassed, ...(await run.finish()) };
  }

  for (const isolation of ["none", "process"] as const) {
    it(`counts, and says what failed and how to run it alone (isolation: ${isolation})`, async () => {
      const { isPassed, summary, text } = await runOf("fails.ts", isolation);
      assert.equal(isPassed, false);
      assert.equal(isGreen(summary), false);
      const { tests, passed, failed, skipped, skippedFor, failures, complaints, slowest } = summary;
      assert.deepEqual(
        { tests, passed, failed, skipped, complaints },
        { tests: 3, passed: 1, failed: 1, skipped: 1, complaints: [] },
      );
      assert.deepEqual(skippedFor, [{ why: "nobody wants them", tests: 1 }]);
      assert.ok(text.includes("\nskipped in example:\n       1  nobody wants them\n"), text);
      assert.deepEqual(
        slowest.map(({ file, cpuSeconds }) => [file, cpuSeconds !== undefined && cpuSeconds > 0]),
        // among others in one process nobody can say whose time it was
        [["test/runner/examples/fails.ts", isolation === "process"]],
      );
      const again =
        "node_modules/.bin/node test/runner/main.ts host test/runner/examples/fails.ts --name '^sums are wrong \\(it'\\''s meant so\\)$'";
      assert.deepEqual(failures, [
        {
          file: "test/runner/examples/fails.ts",
          path: ["sums", "are wrong (it's meant so)"],
          message: "one and one\nare two\n\n2 !== 3\n",
          again,
          cancelled: 0,
        },
      ]);
      const words = `test/runner/examples/fails.ts: sums › are wrong (it's meant so)\n  one and one\n  are two\n  2 !== 3\n  again: ${again}\n`;
      assert.ok(text.includes(words), text);
      assert.match(text, /\nℹ tests 3\nℹ suites 1\nℹ pass 1\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\n/);
      assert.equal(readFileSync(join(report, "failures.txt"), "utf8"), `example:\n${words}`);
      const written: Summary = JSON.parse(readFileSync(join(report, "suites.jsonl"), "utf8"));
      assert.deepEqual(written, summary);
    });
  }

  for (const [isolation, isApart] of [
    ["none", true],
    ["process", true],
    ["process", false],
  ] as const) {
    const where = isApart ? "" : ", among all others";
    it(`fails on folders and processes that are left (isolation: ${isolation}${where})`, async () => {
      const { summary } = await runOf("leaves.ts", isolation, { options: { isApart } });
      assert.deepEqual([summary.tests, summary.failed], [3, 0]);
      assert.equal(isGreen(summary), false);
      const said = summary.complaints.join("\n");
      const pids = [...said.matchAll(/left running, and killed: (\d+) \/bin\/sleep (1234|4321)$/gm)];
      assert.deepEqual(pids.map(([, , which]) => which).sort(), ["1234", "4321"], said);
      assert.match(said, /left in the temporary directory: .*\/berth-example-\* \(1\)$/m);
      assert.equal(summary.complaints.length, 3, said);
      const [, folder = ""] = /temporary directory: (.*)\/berth-example/.exec(said) ?? [];
      assert.ok(folder !== "" && !existsSync(folder));
    });
  }

  it("says how what failed is drawn alike", async () => {
    const { summary } = await runOf("fails.ts", "process", { env: { BERTH_SEED: "7" } });
    const [{ again } = { again: "" }] = summary.failures;
    assert.match(again, /^BERTH_SEED='7' node_modules\/\.bin\/node test\/runner\/main\.ts host /);
  });

  it("says what failed by itself, and how many were cancelled with it", async () => {
    const { summary, text } = await runOf("hook.ts", "process");
    assert.equal(isGreen(summary), false);
    assert.deepEqual(
      summary.failures.map(({ path, message, cancelled }) => [path, message, cancelled]),
      [[["a suite"], "nothing is there", 2]],
    );
    assert.ok(text.includes("a suite\n  nothing is there\n  2 tests were not run because of it\n"), text);
  });

  for (const [isolation, setUp] of [["none"], ["process"], ["process", "setup.ts"]] as const) {
    it(`names what is not through at the deadline, and is not whole (isolation: ${isolation}, ${setUp ?? "nothing"} shared)`, async () => {
      const deadline = Math.ceil(Date.now() / 1000) + 1;
      const files = ["endless.ts", "fails.ts", "leaves.ts"];
      const { summary, text } = await runOf(files, isolation, {
        env: { BERTH_DEADLINE: String(deadline) },
        globalSetup: setUp,
      });
      const { leftOut, failures, complaints } = summary;
      const all = files.map((file) => `test/runner/examples/${file}`);
      assert.deepEqual({ leftOut, failures, complaints }, { leftOut: all, failures: [], complaints: [] });
      assert.equal(summary.verdict, "incomplete");
      assert.ok(text.includes(`left out of example, as its time was over:\n${all.join("\n")}\n`), text);
      assert.match(text, /\nexample: NOT RUN: 3 files were left out, /);
      const kept = all.map((file) => `example: ${file}\n`).join("");
      assert.equal(readFileSync(join(report, "left-out.txt"), "utf8"), kept);
    });
  }

  it("counts what had not begun when it was interrupted, and names what had", async () => {
    const more = { globalSetup: "setup.ts", isInterrupted: true } as const;
    const { summary, text } = await runOf(["endless.ts", "fails.ts", "leaves.ts"], "process", more);
    assert.equal(summary.verdict, "failed");
    assert.deepEqual(
      summary.failures.map(({ file }) => file),
      ["test/runner/examples/endless.ts"],
    );
    assert.ok(text.includes("\nit was interrupted before 2 of its files had begun\n"), text);
  });

  for (const isolation of ["none", "process"] as const) {
    it(`leaves nothing behind when it is killed (isolation: ${isolation})`, async () => {
      const { NODE_TEST_CONTEXT: _, ...env } = process.env;
      const folder = join(report, "tmp");
      mkdirSync(folder);
      const runner = spawn(process.execPath, ["--input-type=module", "--eval", KILLED, isolation, ENDLESS], {
        cwd: ROOT,
        env: { ...env, BERTH_REPORT: report, TMPDIR: folder },
        stdio: ["ignore", "ignore", "inherit"],
      });
      const ended = once(runner, "exit");
      const ofRun = () => environments().filter((each) => each.includes(`BERTH_REPORT=${report}`));
      const ofTests = () =>
        ofRun().filter((each) => each.some((pair) => pair.startsWith("NODE_TEST_CONTEXT=")));
      // with isolation none the tests are in the process that counts them
      const inTests = isolation === "process" ? ofTests : () => ofRun().filter(hasMark);
      while (inTests().length === 0) await pause(50);
      assert.equal(readdirSync(folder).length, 1);
      runner.kill("SIGKILL");
      await ended;
      while (ofRun().length > 0) await pause(50);
      assert.deepEqual(readdirSync(folder), []);
      const isRecord = (file: string) => file.startsWith("records-");
      while (readdirSync(report).some(isRecord)) await pause(50);
    });

    it(`names a suite that is skipped whole (isolation: ${isolation})`, async () => {
      const { summary } = await runOf("skips.ts", isolation);
      assert.deepEqual([summary.verdict, summary.tests], ["passed", 1]);
      const why = "it needs another machine (a suite, with all that is in it)";
      assert.deepEqual(summary.skippedFor, [{ why, tests: 1 }]);
    });

    it(`says that nothing passed if all of it was skipped (isolation: ${isolation})`, async () => {
      const { summary } = await runOf("skips.ts", isolation, { test: "what nobody" });
      assert.deepEqual(summary.complaints, ["nothing passed: all of it was skipped"]);
    });

    it(`reads on after a line that was cut off (isolation: ${isolation})`, async () => {
      const cut = `{"kind":"begun","file":"${join(ROOT, ENDLESS)}","path":["}`;
      const { summary } = await runOf("tells.ts", isolation, { env: { BERTH_TELLS: cut } });
      assert.deepEqual([summary.verdict, summary.tests], ["passed", 1]);
    });
  }

  it("begins with what takes longest, whatever its name, and calls it as all others", async () => {
    const files = ["fails.ts", "hook.ts"];
    const first = ["test/runner/examples/hook.ts"];
    const { summary, text } = await runOf(files, "process", { first });
    assert.deepEqual(
      summary.failures.map(({ file }) => file),
      ["hook.ts", "fails.ts"].map((file) => `test/runner/examples/${file}`),
    );
    assert.match(text, /again: \S+ test\/runner\/main\.ts host test\/runner\/examples\/hook\.ts /);
  });

  it("runs groups at the same time that are given at once", async () => {
    const run = new SuiteRun("example", { ...own(), BERTH_REPORT: report }, { output: "ignore" });
    const files = ["test/runner/examples/meets.ts"];
    const group = { name: "host", files, isolation: "process", timeoutMs: 60_000 } as const;
    assert.equal(await run.pass({ group, files, runs: 1 }, { group, files, runs: 1 }), true);
    const { summary } = await run.finish();
    assert.deepEqual([summary.passed, summary.complaints], [2, []]);
  });

  it("begins nothing after the deadline", async () => {
    const { summary, text } = await runOf("fails.ts", "process", { env: { BERTH_DEADLINE: "1" } });
    assert.deepEqual([summary.tests, summary.leftOut], [0, ["test/runner/examples/fails.ts"]]);
    assert.equal(isGreen(summary), false);
    assert.match(text, /\nexample: NOT RUN: 1 file was left out, /);
  });

  it("fails when there was nothing to run, or the runner itself failed", async () => {
    const { isPassed, summary } = await runOf("nowhere.ts", "process");
    assert.equal(isPassed, false);
    assert.equal(isGreen(summary), false);
  });
});
