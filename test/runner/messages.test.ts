// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "./files.ts";
import { readable } from "./messages.ts";
import { reportFolder } from "./run.ts";
import { wordsOfUnwritable } from "./unwritable.ts";

function messageOf(actual: unknown, expected: unknown): string {
  try {
    assert.deepEqual(actual, expected);
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  }
  throw new Error("they are equal");
}

describe("a message that is shortened", () => {
  const entries = Array.from({ length: 500 }, (_, n) => [`k${n}`, { value: n, list: [1, 2, 3] }] as const);

  it("shows what differs in large maps", () => {
    const expected = new Map<string, unknown>([...entries, ["k350", { value: 7, list: [1, 2, 3] }]]);
    const text = readable(messageOf(new Map(entries), expected), 8);
    assert.match(text, /^\+ .*350/m);
    assert.match(text, /^- .*7/m);
    assert.ok(text.split("\n").length <= 8, text);
  });

  it("shows of either side where all of two large values differs", () => {
    const text = readable(
      messageOf(
        entries,
        entries.map(([name]) => name),
      ),
      8,
    );
    const lines = text.split("\n");
    assert.ok(lines.filter((line) => line.startsWith("+ ")).length >= 2, text);
    assert.ok(lines.filter((line) => line.startsWith("- ")).length >= 2, text);
    assert.match(lines.at(-1) ?? "", /^… and \d+ more lines that differ$/);
    assert.equal(lines.length, 8);
  });

  it("leaves out what is said besides before what differs", () => {
    const log = Array.from({ length: 20 }, (_, n) => `line ${n} of a log`).join("\n");
    const difference = messageOf([["c1 was refused"], 0], [[], 0]);
    const lines = readable(`${log}\n${difference}`, 8).split("\n");
    assert.equal(lines[0], "line 0 of a log");
    assert.ok(lines.some((line) => line.startsWith("+ ") && line.includes("c1 was refused")));
    assert.ok(lines.length <= 8 && !lines.some((line) => line.startsWith("…")), lines.join("\n"));
  });

  it("is left as it is when it is short, and is its beginning when nothing is compared", () => {
    assert.equal(readable("a\n\nb", 2), "a\n\nb");
    assert.equal(readable("a\nb\n- c\n+ d", 3), "a\nb\n- c");
  });
});

describe("a report", () => {
  it("keeps nothing of an earlier run", () => {
    const folder = join(ROOT, "build/report/example-of-reports");
    mkdirSync(folder, { recursive: true });
    const files = ["suites.jsonl", "failures.txt", "left-out.txt"].map((name) => join(folder, name));
    for (const file of files) writeFileSync(file, "old\n");
    assert.equal(reportFolder("example-of-reports", {}), folder);
    assert.deepEqual(
      files.filter((file) => existsSync(file)),
      [],
    );
    rmSync(folder, { recursive: true });
  });

  for (const code of ["ENOSPC", "EROFS", "EACCES"])
    it(`says in one line what to do on ${code}`, () => {
      const error = Object.assign(new Error(code), { code, syscall: "open", path: "/x/y" });
      const words = wordsOfUnwritable(error) ?? "";
      assert.match(words, /^cannot write \/x\/y: .*name other folders with TMPDIR .* and BERTH_REPORT /);
      assert.ok(!words.includes("\n"));
    });

  it("says so instead of where in the runner that was", () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(ROOT, "test/runner/main.ts"), "host", "test/docs/firewall.test.ts"],
      { encoding: "utf8", env: { ...process.env, TMPDIR: "/nowhere/at/all" } },
    );
    assert.equal(status, 1);
    assert.match(stderr, /^host: cannot write \/nowhere\/at\/all\/b-\S*: there is no such folder: .*\n$/);
  });
});
