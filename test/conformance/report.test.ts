// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { focusOn, resultsOf, tableOf, withResults } from "./report.ts";

const CASES = [
  ["[It] [sig-b] runs &quot;one&quot; &amp; more [Conformance] [sig-b, Conformance]", "passed", "1.6"],
  ["[It] [sig-a] fails [sig-a]", "failed", "20.1"],
  ["[It] [sig-a] is cut off", "interrupted", "3"],
  ["[It] [sig-a] is not asked for", "skipped", "0"],
  ["[SynchronizedBeforeSuite]", "passed", "0.1"],
];
const JUNIT = CASES.map(
  ([name, status, time]) => `<testcase name="${name}" classname="suite" status="${status}" time="${time}">`,
).join("\n");

describe("the report of Kubernetes' tests", () => {
  it("has each spec that was run, and counts as failed what did not pass", () => {
    assert.deepEqual(resultsOf(JUNIT), [
      { spec: "[sig-a] fails", verdict: "failed", seconds: 20 },
      { spec: "[sig-a] is cut off", verdict: "failed", seconds: 3 },
      { spec: '[sig-b] runs "one" & more [Conformance]', verdict: "passed", seconds: 2 },
    ]);
  });

  it("shows host-local beside what failed, and says where that was not run", () => {
    const all = resultsOf(JUNIT);
    const rows = tableOf(all, [{ spec: "[sig-a] fails", verdict: "passed", seconds: 9 }]).split("\n");
    assert.deepEqual(rows.slice(2), [
      "| [sig-a] fails | failed, 20 s | passed, 9 s |",
      "| [sig-a] is cut off | failed, 3 s | not run |",
      '| [sig-b] runs "one" & more [Conformance] | passed, 2 s |  |',
    ]);
  });

  it("names specs again so that nothing in a name is a pattern", () => {
    for (const { spec } of resultsOf(JUNIT)) {
      const [pattern = ""] = focusOn([{ spec, verdict: "failed", seconds: 0 }]);
      assert.match(spec, new RegExp(`^${pattern}$`));
    }
  });

  it("is put between its marks, and nowhere else", () => {
    const marked = "a\n<!-- results: begin -->\nold\n<!-- results: end -->\nb\n";
    const written = withResults(marked, "new");
    assert.equal(written, "a\n<!-- results: begin -->\nnew\n<!-- results: end -->\nb\n");
    assert.throws(() => withResults("a", "new"), /has no/);
  });
});
