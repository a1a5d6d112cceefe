// SPDX-License-Identifier: Apache-2.0
// What must never look green, and the words for it: each example is a file of tests that node's own runner passes, or
// fails without a reason.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";
import { type Failure, wordsOf } from "./results.ts";
import { SuiteRun } from "./run.ts";

const IMPORT = 'import { after, afterEach, before, describe, it } from "node:test";\n';
const PASSES = `${IMPORT}it("passes", () => {});\n`;

interface More {
  readonly name?: string;
  readonly silenceMs?: number;
  readonly timeoutMs?: number;
  /** The run is interrupted once this file is there; empty: at once. */
  readonly interruptAt?: string;
}

describe("a run that is not green", () => {
  let report: string;
  /** Where files of tests may be: below the root, and nothing that git has. */
  let examples: string;
  beforeEach(() => {
    report = mkdtempSync(join(tmpdir(), "berth-report-"));
    mkdirSync(join(ROOT, "build"), { recursive: true });
    examples = mkdtempSync(join(ROOT, "build/example-"));
  });
  afterEach(() => {
    rmSync(report, { recursive: true });
    rmSync(examples, { recursive: true });
  });

  async function runOf(
    sources: Readonly<Record<string, string>>,
    isolation: "none" | "process",
    more: More = {},
  ) {
    const files = Object.entries(sources).map(([name, source]) => {
      const file = join(examples, name);
      writeFileSync(file, source);
      return relative(ROOT, file);
    });
    // what node's runner tells the processes that it starts would make ours one of them
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { name, silenceMs, timeoutMs, interruptAt } = more;
    const options = { output: "ignore", ...(silenceMs !== undefined && { silenceMs }) } as const;
    const run = new SuiteRun("example", { ...env, BERTH_REPORT: report }, options);
    const time = timeoutMs === undefined ? {} : { timeoutMs };
    const group = { name: "host", files, isolation, ...time };
    const passing = run.pass({ group, files, runs: 1, name });
    if (interruptAt !== undefined) {
      while (interruptAt !== "" && !existsSync(interruptAt)) await pause(50);
      run.interrupt("SIGINT");
    }
    await passing;
    const { summary, text } = await run.finish();
    assert.equal(summary.verdict, "failed", text);
    return summary;
  }

  /** The only failure, in its words but for the last, which is how to run it again. */
  function only(failures: readonly Failure[]): string {
    assert.equal(failures.length, 1, JSON.stringify(failures));
    const lines = failures.flatMap(wordsOf);
    assert.match(
      lines.at(-1) ?? "",
      /^ {2}again: node_modules\/\.bin\/node test\/runner\/main\.ts host build\/example-/,
    );
    return lines.slice(0, -1).join("\n").replaceAll(relative(ROOT, examples), "EXAMPLES");
  }

  for (const isolation of ["none", "process"] as const) {
    describe(`isolation: ${isolation}`, () => {
      for (const hook of ["after", "afterEach"] as const) {
        it(`has a hook ${hook} that throws`, async () => {
          const text = `describe("a suite", () => { ${hook}(() => { throw new Error("no end"); }); it("x", () => {}); });`;
          const { failures } = await runOf({ "a.test.ts": IMPORT + text }, isolation);
          const path = hook === "after" ? "a suite" : "a suite › x";
          assert.equal(only(failures), `EXAMPLES/a.test.ts: ${path}\n  no end`);
        });
      }

      it("has a test that ends its process", async () => {
        const text = `${PASSES}it("exits", async () => {\n  await null;\n  process.exit(0);\n});\nit("is not run", () => {});\n`;
        const { failures, complaints } = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, isolation);
        const why = "a test ended its process, so that what comes after it was not run";
        assert.equal(
          only(failures),
          `EXAMPLES/a.test.ts\n  ${why}: process.exit(0) at EXAMPLES/a.test.ts:5:11`,
        );
        assert.deepEqual(complaints, []);
      });

      for (const define of ["it", "test", "describe", "suite"]) {
        it(`has ${define} with only, which would leave out others`, async () => {
          const text = `import { ${define} } from "node:test";\n${define}.only("alone", () => {});\n`;
          const { failures, passed } = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, isolation);
          const place = `EXAMPLES/a.test.ts:2:${define.length + 2}`;
          const why = `.only at ${place} would leave out other tests: all of them are to be run`;
          assert.equal(only(failures), `EXAMPLES/a.test.ts\n  ${why}`);
          assert.equal(passed, 1);
        });
      }

      it("has a test with the option only", async () => {
        const text = `${PASSES}it("alone", { only: ${true} }, () => {});\n`;
        const { failures } = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, isolation);
        const why = "the option only would leave out other tests: all of them are to be run";
        assert.equal(only(failures), `EXAMPLES/a.test.ts\n  ${why}`);
      });

      it("has a file without a test", async () => {
        const { failures, tests } = await runOf({ "a.test.ts": IMPORT, "b.test.ts": PASSES }, isolation);
        assert.match(only(failures), /^EXAMPLES\/a\.test\.ts\n.*(it has no test|of its tests: it has none)/);
        assert.equal(tests, 1);
      });

      it("has no test of the name that was asked for", async () => {
        const { failures, complaints, tests } = await runOf({ "a.test.ts": PASSES }, isolation, {
          name: "^nobody$",
        });
        assert.deepEqual([failures, complaints, tests], [[], ["no test is called ^nobody$"], 0]);
      });

      it("has a file that is no TypeScript", async () => {
        const { failures } = await runOf(
          { "a.test.ts": `${PASSES}const x = ;\n`, "b.test.ts": PASSES },
          isolation,
        );
        assert.match(only(failures), /^EXAMPLES\/a\.test\.ts\n(.*\n)*.*Expression expected/);
      });

      it("has a file that throws after its first test", async () => {
        const { failures } = await runOf(
          { "a.test.ts": `${PASSES}throw new Error("too late");\n` },
          isolation,
        );
        assert.match(only(failures), /^EXAMPLES\/a\.test\.ts\n(.*\n)*.*too late/);
      });

      it("has a test that throws when it is over", async () => {
        const text = `it("is early", () => { setTimeout(() => { throw new Error("late one"); }, 5); });
          it("waits", () => new Promise((resolve) => setTimeout(resolve, 500)));`;
        const { failures } = await runOf({ "a.test.ts": IMPORT + text }, isolation);
        assert.match(only(failures), /^EXAMPLES\/a\.test\.ts.*\n.*Test "is early".*"Error: late one"/);
      });

      it("has a test that blocks its process", async () => {
        const text = `${IMPORT}const pause = () => new Promise((resolve) => setTimeout(resolve, 300));
          it("waits", pause); it("hangs", () => { for (;;); }); it("is innocent", () => {});`;
        const { failures, complaints } = await runOf({ "a.test.ts": text }, isolation, { silenceMs: 3_000 });
        const why = "nothing was heard of any test for 3 s, and this test was under way";
        assert.equal(only(failures), `EXAMPLES/a.test.ts: hangs\n  ${why}`);
        assert.match(failures[0]?.again ?? "", / --name '\^hangs\$'$/);
        // the process of the file, once the runner that started it is killed
        assert.equal(complaints.length, isolation === "none" ? 0 : 1, complaints.join("\n"));
      });

      it("has a test whose process is killed", async () => {
        const text = `${PASSES}it("dies", () => process.kill(process.pid, "SIGKILL"));`;
        const { failures, complaints } = await runOf({ "a.test.ts": text }, isolation);
        const file = "EXAMPLES/a.test.ts";
        const alone = `  the process of ${file} ended with SIGKILL before it had told of all tests, and this test was under way`;
        const expected =
          isolation === "none"
            ? `${file}: dies\n${alone}`
            : `${file}\n  under way: dies\n  its process was ended by SIGKILL`;
        assert.equal(only(failures), expected);
        assert.deepEqual(complaints, []);
      });

      it("is interrupted while a test blocks its process", async () => {
        const interruptAt = join(examples, "begun");
        const begins = `process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(interruptAt)}, "");`;
        const text = `${PASSES}it("hangs", () => { ${begins} for (;;); });`;
        const { failures, complaints } = await runOf({ "a.test.ts": text }, isolation, { interruptAt });
        const said = [...failures.flatMap(wordsOf), ...complaints].join("\n");
        assert.match(said, /a\.test\.ts: hangs\b/);
        assert.match(said, /again: .* --name '\^hangs\$'/);
        assert.match(said, /^it was interrupted$/m);
      });

      it("is interrupted before any test has begun", async () => {
        const text = `${IMPORT}it("hangs", () => { for (;;); });`;
        const { tests, complaints } = await runOf({ "a.test.ts": text }, isolation, { interruptAt: "" });
        assert.deepEqual([tests, complaints], [0, ["it was interrupted"]]);
      });

      it("has a contract that another file runs: the test's file is named", async () => {
        const contract = `import { describe, it } from "node:test";
          export const contract = (name) => describe(name, () => it("holds", () => { throw new Error("broken"); }));`;
        writeFileSync(join(examples, "contract.ts"), contract);
        const calls = 'import { contract } from "./contract.ts";\ncontract("a store");\n';
        const { failures, slowest } = await runOf({ "a.test.ts": PASSES, "b.test.ts": calls }, isolation);
        assert.equal(only(failures), "EXAMPLES/b.test.ts: a store › holds\n  broken");
        assert.match(failures[0]?.again ?? "", /\/b\.test\.ts --name '\^a store holds\$'$/);
        assert.ok(!JSON.stringify(slowest).includes("contract"));
      });

      it("has a promise that is rejected at the top level of a file", async () => {
        const text = `${PASSES}Promise.reject(new Error("nobody waits"));\n`;
        const { failures } = await runOf({ "a.test.ts": PASSES, "b.test.ts": text }, isolation);
        assert.match(only(failures), /^EXAMPLES\/b\.test\.ts\n(.*\n)*.*nobody waits/);
      });

      it("has a subtest that fails, and says how it is run", async () => {
        const text = `${IMPORT}describe("a suite", () => it("outer", async (t) => {
          await t.test("inner", () => { throw new Error("no"); });
        }));`;
        const { failures } = await runOf({ "a.test.ts": text }, isolation);
        assert.equal(only(failures), "EXAMPLES/a.test.ts: a suite › outer › inner\n  no");
        const [, name = ""] = / --name '(.*)'$/.exec(failures[0]?.again ?? "") ?? [];
        const again = await runOf({ "a.test.ts": text }, isolation, { name });
        assert.equal(only(again.failures), "EXAMPLES/a.test.ts: a suite › outer › inner\n  no");
      });
    });
  }

  for (const hook of ["before", "beforeEach"])
    it(`has a ${hook} outside of a describe where files share a process: only its file fails`, async () => {
      const text = `import { ${hook}, it } from "node:test";\n${hook}(() => { throw new Error("no"); });\nit("x", () => {});`;
      const { failures, passed } = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, "none");
      const why = `not run: its hook ${hook} outside of a describe would be one of all files that share its process`;
      assert.equal(only(failures), `EXAMPLES/a.test.ts\n  ${why}`);
      assert.equal(passed, 1);
    });

  it("has a process that was ended in a way that leaves no word", async () => {
    const text = `${PASSES}it("exits", () => process.reallyExit(0));\n`;
    const { failures } = await runOf({ "a.test.ts": text }, "process");
    const why = "its process ended before it had told of its tests: it has none, or one of them ended it";
    assert.equal(only(failures), `EXAMPLES/a.test.ts\n  under way: exits\n  ${why}`);
  });

  it("has only tests that were skipped", async () => {
    const { complaints } = await runOf(
      { "a.test.ts": `${IMPORT}it("x", { skip: "no part" }, () => {});` },
      "process",
    );
    assert.deepEqual(complaints, ["nothing passed: the one test skipped"]);
  });

  it("shows both values of an assertion", async () => {
    const text =
      'import assert from "node:assert/strict";\nit("sums", () => assert.equal("one\\ntwo", "one\\nthree"));';
    const { failures } = await runOf({ "a.test.ts": IMPORT + text }, "process");
    const words = only(failures);
    assert.match(words, /\n {2}\+ .*two/);
    assert.match(words, /\n {2}- .*three/);
  });

  it("says of a hook before that fails how many tests it took with it", async () => {
    const tests = [1, 2, 3].map((n) => `it("${n}", () => {});`).join("");
    const text = `describe("a suite", () => { before(() => { throw new Error("nothing is there"); }); ${tests} });`;
    const { failures } = await runOf({ "a.test.ts": IMPORT + text }, "process");
    assert.equal(
      only(failures),
      "EXAMPLES/a.test.ts: a suite\n  nothing is there\n  3 tests were not run because of it",
    );
  });
});
