// SPDX-License-Identifier: Apache-2.0
// A process of tests that are all over, and that goes on: who is named.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import type { Summary } from "./results.ts";
import { SuiteRun } from "./run.ts";

const [HOLDS, SKIPS] = ["test/runner/examples/holds.ts", "test/runner/examples/skips.ts"];

async function summaryOf(t: TestContext, isolation: "none" | "process"): Promise<Summary> {
  const report = mkdtempSync(join(tmpdir(), "berth-report-"));
  t.after(() => rmSync(report, { recursive: true }));
  // what node's runner tells the processes that it starts would make ours one of them
  const { NODE_TEST_CONTEXT: _, BERTH_SEED: _seed, ...env } = process.env;
  const options = { output: "ignore", silenceMs: 3_000 } as const;
  const run = new SuiteRun("example", { ...env, BERTH_REPORT: report }, options);
  const files = [HOLDS, SKIPS];
  await run.pass({ group: { name: "host", files, isolation }, files, runs: 1 });
  return (await run.finish()).summary;
}

const SILENT = "nothing was heard of any test for 3 s";

it("the file is named whose tests left something open in its process", async (t) => {
  const { failures } = await summaryOf(t, "process");
  assert.deepEqual(
    failures.map(({ file, path, message, again }) => ({ file, path, message, again })),
    [
      {
        file: HOLDS,
        path: [],
        message: `${SILENT}: its tests had ended and its process had not: a hook hangs, or a timer, a server or a process that they left open`,
        again: `node_modules/.bin/node test/runner/main.ts host ${HOLDS}`,
      },
    ],
  );
});

it("where files share a process, no test is blamed that has ended", async (t) => {
  const { complaints, failures } = await summaryOf(t, "none");
  assert.deepEqual(failures, []);
  assert.match(
    complaints.join("\n"),
    new RegExp(
      `^${SILENT}, though all tests that had begun had ended: a hook hangs, or one of them left a timer, a server`,
    ),
  );
});
