// SPDX-License-Identifier: Apache-2.0
// What is known of files that ended before the run was, though node's runner reports them only after an earlier one.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { TestEvent } from "node:test/reporters";
import { ROOT } from "./files.ts";
import { outcomeOf } from "./outcome.ts";
import records, { type RunRecord } from "./record.ts";

const NAMES = ["a.test.ts", "b.test.ts", "c.test.ts", "d.test.ts"];
const group = { name: "host", files: NAMES, isolation: "process" } as const;

/** What node's runner emits for a file's test, or for a file as a test. */
function event(type: string, number: number, entry: string | undefined, error?: unknown): TestEvent {
  const name = entry === undefined ? (NAMES[number - 1] ?? "") : "a test";
  const details = { duration_ms: 1, type: "test", passed: error === undefined, error };
  const file = join(ROOT, entry ?? name);
  const own = { name, nesting: 0, testNumber: 1, testId: number, parentId: 0, tags: [], type: "test" };
  const at = entry === undefined ? { file } : { file, entryFile: file };
  return { type, data: { ...own, details, ...at } } as unknown as TestEvent;
}

async function recordsOf(events: readonly TestEvent[]): Promise<readonly RunRecord[]> {
  const lines: string[] = [];
  async function* all() {
    yield* events;
  }
  for await (const text of records(all())) lines.push(text);
  return lines.map((line) => JSON.parse(line));
}

describe("a run that is ended at its deadline", () => {
  it("tells of failures of files that had ended, and leaves out no others than those under way", async () => {
    const failed = Object.assign(new Error("test failed"), { failureType: "testCodeFailure" });
    const inside = Object.assign(new Error("x"), { failureType: "subtestsFailed" });
    const interrupted = {
      tests: NAMES.slice(0, 3).map((name) => ({ name, nesting: 0, file: join(ROOT, name) })),
    };
    const all = await recordsOf([
      ...NAMES.map((_, at) => event("test:enqueue", at + 1, undefined)),
      event("test:enqueue", 1, "b.test.ts"),
      event(
        "test:complete",
        1,
        "b.test.ts",
        Object.assign(new Error("early"), { failureType: "testCodeFailure" }),
      ),
      event("test:complete", 2, undefined, inside),
      event("test:complete", 3, undefined, failed),
      event("test:complete", 4, undefined),
      { type: "test:interrupted", data: interrupted } as unknown as TestEvent,
    ]);
    const { failures, leftOut, counts } = outcomeOf(all, { group, files: NAMES, runs: 1 }, "at the deadline");
    assert.deepEqual(
      failures.map(({ file, path, message }) => [file, path, message]),
      [
        ["b.test.ts", ["a test"], "early"],
        ["c.test.ts", [], "test failed"],
      ],
    );
    assert.deepEqual(leftOut, ["a.test.ts"]);
    assert.equal(counts.failed, 1);
  });
});
