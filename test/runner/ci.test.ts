// SPDX-License-Identifier: Apache-2.0
// .ci/run with a Makefile in which every target does what a test of it needs.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";

const TARGETS = [
  "build",
  "check",
  "demo",
  "test",
  "control-plane",
  "build/.cluster",
  "api-test",
  "cluster-test",
  "load-test",
];

describe("the gate", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-gate-"));
    mkdirSync(join(folder, ".ci"));
    copyFileSync(join(ROOT, ".ci/run"), join(folder, ".ci/run"));
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** What a target does, by its name; the others do nothing. */
  function start(recipes: Readonly<Record<string, string>>, more: NodeJS.ProcessEnv = {}): ChildProcess {
    const rules = TARGETS.map((target) => `${target}:\n\t@${recipes[target] ?? "true"}\n`);
    writeFileSync(
      join(folder, "Makefile"),
      `SHELL := /bin/bash\n.PHONY: ${TARGETS.join(" ")}\n${rules.join("")}`,
    );
    const { BERTH_REPORT: _, ...env } = process.env;
    // of its own session, as a terminal's
    return spawn("bash", [".ci/run"], {
      cwd: folder,
      env: { ...env, ...more },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
  }

  async function ended(gate: ChildProcess) {
    let text = "";
    gate.stdout?.setEncoding("utf8").on("data", (part: string) => (text += part));
    const [code, signal] = await once(gate, "close");
    return { code, signal, text };
  }

  /** Writes its process's id, and goes on until it is ended. */
  const endless = (name: string) => `echo $$$$ >${name}.pid; sleep 1000`;

  async function pidOf(name: string): Promise<number> {
    const file = join(folder, `${name}.pid`);
    while (!existsSync(file) || readFileSync(file, "utf8") === "") await pause(20);
    return Number(readFileSync(file, "utf8"));
  }

  async function isGone(pid: number): Promise<void> {
    const state = () => {
      try {
        return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
      } catch {
        return undefined;
      }
    };
    while (!["Z", undefined].includes(state())) await pause(20);
  }

  /** A line of suites.jsonl, as a run of tests writes it. */
  function summary(verdict: string, failures: readonly string[] = []): string {
    const line = { suite: "x", verdict, tests: 1, passed: 1, failed: 0, cancelled: 0, skipped: 0, failures };
    return `echo '${JSON.stringify(line)}' >>build/ci/suites.jsonl; test ${verdict} = passed`;
  }

  it("is green with all that there is", async () => {
    const { code, text } = await ended(start({ test: summary("passed") }));
    assert.equal(code, 0, text);
    for (const step of ["set up", "check", "demo", "test", "api-test", "cluster-test", "load-test"])
      assert.match(text, new RegExp(`^${step} +\\d+ s {2}passed$`, "m"));
    assert.match(text, /^1 passed, 0 failed, 0 skipped$/m);
  });

  for (const [signal, status] of [
    ["SIGTERM", 143],
    ["SIGINT", 130],
    ["SIGHUP", 129],
  ] as const) {
    it(`ends what is under way on ${signal}, and says so`, async () => {
      const gate = start({ test: endless("test"), "control-plane": endless("builder") });
      const end = ended(gate);
      const pids = [await pidOf("test"), await pidOf("builder")];
      gate.kill(signal);
      const { code, text } = await end;
      assert.equal(code, status);
      assert.match(text, new RegExp(`^failed: ended by ${signal} while test was under way$`, "m"));
      for (const pid of pids) await isGone(pid);
    });
  }

  it("kills what does not heed", async () => {
    const gate = start({ test: `trap '' TERM; echo $$$$ >test.pid; while true; do sleep 1; done` });
    const end = ended(gate);
    const pid = await pidOf("test");
    gate.kill("SIGTERM");
    await end;
    await isGone(pid);
  });

  it("leaves nothing running when it is killed", async () => {
    const gate = start({ test: endless("test"), "control-plane": endless("builder") });
    const pids = [await pidOf("test"), await pidOf("builder")];
    gate.kill("SIGKILL");
    for (const pid of pids) await isGone(pid);
  });

  it("says once that Kubernetes cannot be built, and names what is left out for it", async () => {
    const { code, text } = await ended(start({ "control-plane": "echo no compiler; false" }));
    assert.equal(code, 1);
    assert.equal(text.match(/^no compiler$/gm)?.length, 1, text);
    const why = "it needs make (\\S+), and Kubernetes cannot be built";
    const leftOut = [...text.matchAll(new RegExp(`^left out: (\\S+): ${why}$`, "gm"))];
    assert.deepEqual(
      leftOut.map(([, name]) => name),
      ["api-test", "cluster-test", "load-test"],
    );
    assert.deepEqual(text.match(/^failed: .*$/gm), [
      "failed: make control-plane: Kubernetes cannot be built; alone: make control-plane",
    ]);
  });

  it("needs all of make test, and of what needs Kubernetes as much as there is time for", async () => {
    const part = await ended(start({ "api-test": summary("incomplete") }));
    assert.equal(part.code, 0, part.text);
    assert.match(part.text, /^api-test +\d+ s {2}passed, as far as there was time$/m);
    const whole = await ended(start({ test: summary("incomplete") }));
    assert.equal(whole.code, 1);
    assert.match(whole.text, /^failed: test: exit status 2; alone: make test$/m);
    const red = await ended(start({ "api-test": summary("failed") }));
    assert.equal(red.code, 1);
  });

  it("is red if a test failed of what was not through when the time was over", async () => {
    // it is begun however little time is left, and ended 15 s before that is over
    const eager = readFileSync(join(ROOT, ".ci/run"), "utf8").replaceAll(
      /(?<=load-test|control-plane) 120/g,
      " 1",
    );
    writeFileSync(join(folder, ".ci/run"), eager);
    const recipe = `${summary("failed", ["a"])}; sleep 1000`;
    const { code, text } = await ended(start({ "load-test": recipe }, { BERTH_CI_SECONDS: "20" }));
    assert.equal(code, 1, text);
    const alone = "failed, and was not through when the time was over; alone: make load-test";
    assert.ok(text.includes(`\nfailed: load-test: ${alone}\n`), text);
  });

  it("takes what somebody else killed for a failure, not for what there was no time for", async () => {
    const { code, text } = await ended(start({ "load-test": "kill -KILL $$PPID" }));
    assert.equal(code, 1, text);
    assert.match(text, /^failed: load-test: exit status 137; alone: make load-test$/m);
  });

  it("has its time whatever the machine's clock is set to meanwhile", async () => {
    mkdirSync(join(folder, "bin"));
    const back = `#!/bin/sh\nif [ -e ${folder}/back ]; then echo 1000; else exec /bin/date "$@"; fi\n`;
    writeFileSync(join(folder, "bin/date"), back, { mode: 0o755 });
    const path = { PATH: `${folder}/bin:${process.env["PATH"]}` };
    const { text } = await ended(start({ check: `touch ${folder}/back` }, path));
    assert.match(text, /^=== load-test \(2[45]\d\d s left\)$/m);
  });

  it("is one at a time in a folder", async () => {
    const first = start({ test: endless("test") });
    const end = ended(first);
    await pidOf("test");
    const second = await ended(start({}));
    first.kill("SIGTERM");
    const { text } = await end;
    assert.equal(second.code, 1, second.text);
    assert.match(second.text, /^another \.ci\/run is under way in this folder, [^\n]*\n$/);
    assert.match(text, /^failed: ended by SIGTERM while test was under way$/m);
  });
});
