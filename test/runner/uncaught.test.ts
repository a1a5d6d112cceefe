// SPDX-License-Identifier: Apache-2.0
// Where files share a process: who is named when nobody catches what a test throws after its first await.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { it, type TestContext } from "node:test";
import { ROOT } from "./files.ts";
import { wordsOf } from "./results.ts";
import { SuiteRun } from "./run.ts";

function newFolder(t: TestContext, prefix: string): string {
  const folder = mkdtempSync(prefix);
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A file of tests: before and after the one that does this, others that do nothing. */
const doing = (what: string) => `import { it } from "node:test";
  const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
  it("is innocent", pause);
  it("is guilty", async () => { await null; ${what} await pause(); });
  it("comes later", pause);\n`;

async function failuresOf(t: TestContext, sources: Readonly<Record<string, string>>) {
  mkdirSync(join(ROOT, "build"), { recursive: true });
  // where files of tests may be: below the root, and nothing that git has
  const folder = newFolder(t, join(ROOT, "build/example-"));
  const files = Object.entries(sources).map(([name, source]) => {
    writeFileSync(join(folder, name), source);
    return relative(ROOT, join(folder, name));
  });
  // what node's runner tells the processes that it starts would make ours one of them
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const report = newFolder(t, join(tmpdir(), "berth-report-"));
  const run = new SuiteRun("example", { ...env, BERTH_REPORT: report }, { output: "ignore" });
  await run.pass({ group: { name: "host", files, isolation: "none" }, files, runs: 1 });
  const { summary } = await run.finish();
  return summary.failures.map((one) =>
    wordsOf(one).join("\n").replaceAll(relative(ROOT, folder), "EXAMPLES"),
  );
}

it("the test is named that was under way where the stack has no file of tests", async (t) => {
  const refused = 'void import("node:net").then(({ connect }) => connect(1, "127.0.0.1"));';
  const [failure = "", ...more] = await failuresOf(t, {
    "a.test.ts": doing(""),
    "b.test.ts": doing(refused),
  });
  assert.deepEqual(more, []);
  assert.match(failure, /^after the end of a test\n.*ECONNREFUSED.*\n {2}under way: is guilty\n/);
});

it("the file is named that it comes from, and the test that was under way", async (t) => {
  const failures = await failuresOf(t, {
    "a.test.ts": doing(""),
    "rejects.test.ts": doing('void Promise.reject(new Error("nobody waits"));'),
    "b.test.ts": doing(""),
    "throws.test.ts": doing('setTimeout(() => { throw new Error("nobody catches"); }, 5);'),
  });
  const [rejected = "", thrown = "", ...more] = failures.toSorted();
  assert.deepEqual(more, []);
  assert.match(rejected, /^EXAMPLES\/rejects\.test\.ts.*\n.*nobody waits.*\n {2}under way: is guilty\n/);
  assert.match(thrown, /^EXAMPLES\/throws\.test\.ts.*\n.*nobody catches.*\n {2}under way: is guilty\n/);
});
