// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { defect, type Finding, pending } from "../../allocator/gc/finding.ts";
import { adviceOn } from "./check-advice.ts";

const WAITING: readonly string[] = ["stray-block", "unreserved-request"];
const AUDIT = join(import.meta.dirname, "../../allocator/gc");

/** Kinds that the audit of the records finds with the function. */
function kindsIn(severity: Finding["severity"]): readonly Finding["kind"][] {
  const sources = globSync("audit*.ts", { cwd: AUDIT }).filter((name) => !name.endsWith(".test.ts"));
  const text = sources.map((name) => readFileSync(join(AUDIT, name), "utf8")).join("\n");
  const found = text.matchAll(new RegExp(`\\b${severity}\\(\\s*"([a-z-]+)"`, "g"));
  return [...new Set([...found].map(([, kind]) => kind as Finding["kind"]))];
}

describe("what check says to do", () => {
  it("is said of each kind that the records show, once", () => {
    const kinds = kindsIn("defect");
    assert.ok(kinds.length >= 10, kinds.join(" "));
    for (const kind of kinds) {
      const two = [defect(kind, "a", "x"), defect(kind, "b", "y")];
      const [words = "", ...more] = adviceOn(two, "cluster");
      assert.ok(words.startsWith(`${kind}: `) && more.length === 0, kind);
      assert.doesNotMatch(words, /POD/);
      assert.doesNotMatch(adviceOn(two, "etcd").join(), /\bpods?\b/);
    }
    for (const kind of kindsIn("pending").filter((one) => !WAITING.includes(one)))
      assert.match(adviceOn([pending(kind, "a", "x")], "data").join(), /^pending: .* berthctl up$/);
  });

  it("is not that Berth ends within two minutes what waits for pods, or for a free address", () => {
    for (const kind of WAITING as Finding["kind"][]) {
      const waits = [pending(kind, "a", "x"), pending(kind, "b", "y")];
      const [words = "", ...more] = adviceOn(waits, "cluster");
      assert.ok(words.startsWith(`${kind}: `) && more.length === 0, words);
      assert.doesNotMatch(words, /under way|two minutes/);
    }
  });

  it("is left to findings that say it themselves", () => {
    assert.deepEqual(adviceOn([pending("unreviewed", "a", "x"), defect("unread", "b", "y")], "cluster"), []);
  });
});
