// SPDX-License-Identifier: Apache-2.0
// What must never look green, and the words for it: each example is a file of tests that node's own runner passes, or
// fails without a reason.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";
import { wordsOf } from "./results.ts";
import { SuiteRun } from "./run.ts";

const IMPORT = 'import { after, afterEach, before, describe, it } from "node:test";\n';
const PASSES = `${IMPORT}it("passes", () => {});\n`;

interface More {
  readonly name?: string;
  readonly silenceMs?: number;
  readonly timeoutMs?: number;
  /** The run is interrupted once the example has made its file `begun`, or at once. */
  readonly interrupt?: "when begun" | "at once";
}

/** For ever, and keeps no processor from others. */
const BLOCKS = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
const BEGINS = 'process.getBuiltinModule("node:fs").writeFileSync(import.meta.dirname + "/begun", "");';

/** Each fails by itself, and harms no other: one run has them all. */
const TOGETHER = {
  "after.test.ts": `${IMPORT}describe("a suite", () => { after(() => { throw new Error("no end"); }); it("x", () => {}); });`,
  "after-each.test.ts": `${IMPORT}describe("a suite", () => { afterEach(() => { throw new Error("no end"); }); it("x", () => {}); });`,
  "empty.test.ts": IMPORT,
  "contract.ts": `import { describe, it } from "node:test";
    export const contract = (name) => describe(name, () => it("holds", () => { throw new Error("broken"); }));`,
  "calls.test.ts": 'import { contract } from "./contract.ts";\ncontract("a store");\n',
  "values.test.ts": `${IMPORT}import assert from "node:assert/strict";\nit("sums", () => assert.equal("one\\ntwo", "one\\nthree"));`,
  "before.test.ts": `${IMPORT}describe("a suite", () => { before(() => { throw new Error("nothing is there"); }); ${[1, 2, 3].map((n) => `it("${n}", () => {});`).join("")} });`,
  "subtest.test.ts": `${IMPORT}describe("a suite", () => it("outer", async (t) => {
    await t.test("inner", () => { throw new Error("no"); });
  }));`,
};
const { "subtest.test.ts": SUBTEST } = TOGETHER;

/** The same of files that cannot be loaded: where they share a process no test is run. */
const UNLOADABLE = {
  "no-typescript.test.ts": `${PASSES}const x = ;\n`,
  "throws.test.ts": `${PASSES}throw new Error("too late");\n`,
  "rejected.test.ts": `${PASSES}Promise.reject(new Error("nobody waits"));\n`,
};

const DEFINES = ["it", "test", "describe", "suite"] as const;
const leavingOut = (define: string) =>
  `import { ${define} } from "node:test";\n${define}.only("alone", () => {});\n`;

describe("a run that is not green", () => {
  const made: string[] = [];
  after(() => {
    for (const folder of made) rmSync(folder, { recursive: true });
  });

  function newFolder(prefix: string): string {
    mkdirSync(dirname(prefix), { recursive: true });
    const folder = mkdtempSync(prefix);
    made.push(folder);
    return folder;
  }

  async function runOf(
    sources: Readonly<Record<string, string>>,
    isolation: "none" | "process",
    more: More = {},
  ) {
    // where files of tests may be: below the root, and nothing that git has
    const folder = newFolder(join(ROOT, "build/example-"));
    for (const [name, source] of Object.entries(sources)) writeFileSync(join(folder, name), source);
    const names = Object.keys(sources).filter((name) => name.endsWith(".test.ts"));
    const files = names.map((name) => relative(ROOT, join(folder, name)));
    // what node's runner tells the processes that it starts would make ours one of them
    const { NODE_TEST_CONTEXT: _, BERTH_SEED: _seed, ...env } = process.env;
    const { name, silenceMs, timeoutMs, interrupt } = more;
    const options = { output: "ignore", ...(silenceMs !== undefined && { silenceMs }) } as const;
    const report = newFolder(join(tmpdir(), "berth-report-"));
    const run = new SuiteRun("example", { ...env, BERTH_REPORT: report }, options);
    const time = timeoutMs === undefined ? {} : { timeoutMs };
    const group = { name: "host", files, isolation, ...time };
    const passing = run.pass({ group, files, runs: 1, name });
    if (interrupt !== undefined) {
      while (interrupt === "when begun" && !existsSync(join(folder, "begun"))) await pause(50);
      run.interrupt("SIGINT");
    }
    await passing;
    const { summary, text } = await run.finish();
    assert.equal(summary.verdict, "failed", text);
    return { ...summary, folder: relative(ROOT, folder) };
  }

  type Run = Awaited<ReturnType<typeof runOf>>;

  /** The failures of one file of a run. */
  const inFile = ({ failures, ...run }: Run, name: string): Run => ({
    ...run,
    failures: failures.filter(({ file }) => file === `${run.folder}/${name}`),
  });

  /** The only failure, in its words but for the last, which is how to run it again. */
  function only({ failures, folder }: Pick<Run, "failures" | "folder">): string {
    assert.equal(failures.length, 1, JSON.stringify(failures));
    const lines = failures.flatMap(wordsOf);
    assert.match(
      lines.at(-1) ?? "",
      /^ {2}again: node_modules\/\.bin\/node test\/runner\/main\.ts host build\/example-/,
    );
    return lines.slice(0, -1).join("\n").replaceAll(folder, "EXAMPLES");
  }

  for (const isolation of ["none", "process"] as const) {
    describe(`isolation: ${isolation}`, () => {
      let together: Run;
      let unloadable: Run;
      let leftOut: Run;
      before(async () => {
        together = await runOf(TOGETHER, isolation);
        unloadable = await runOf(UNLOADABLE, isolation);
        const sources = DEFINES.map((define) => [`${define}.test.ts`, leavingOut(define)] as const);
        leftOut = await runOf({ ...Object.fromEntries(sources), "passes.test.ts": PASSES }, isolation);
        for (const { complaints } of [together, unloadable, leftOut]) assert.deepEqual(complaints, []);
      });
      const told = (name: keyof typeof TOGETHER) => only(inFile(together, name));
      const unloaded = (name: keyof typeof UNLOADABLE) => only(inFile(unloadable, name));

      for (const hook of ["after", "afterEach"] as const) {
        it(`has a hook ${hook} that throws`, () => {
          const [name, path] =
            hook === "after"
              ? (["after.test.ts", "a suite"] as const)
              : (["after-each.test.ts", "a suite › x"] as const);
          assert.equal(told(name), `EXAMPLES/${name}: ${path}\n  no end`);
        });
      }

      it("has a test that ends its process", async () => {
        const text = `${PASSES}it("exits", async () => {\n  await null;\n  process.exit(0);\n});\nit("is not run", () => {});\n`;
        const run = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, isolation);
        const why = "a test ended its process, so that what comes after it was not run";
        assert.equal(only(run), `EXAMPLES/a.test.ts\n  ${why}: process.exit(0) at EXAMPLES/a.test.ts:5:11`);
        assert.deepEqual(run.complaints, []);
      });

      for (const define of DEFINES) {
        it(`has ${define} with only, which would leave out others`, () => {
          const file = `EXAMPLES/${define}.test.ts`;
          const why = `.only at ${file}:2:${define.length + 2} would leave out other tests: all of them are to be run`;
          assert.equal(only(inFile(leftOut, `${define}.test.ts`)), `${file}\n  ${why}`);
          assert.equal(leftOut.passed, 1);
        });
      }

      it("has a test with the option only", async () => {
        const text = `${PASSES}it("alone", { only: ${true} }, () => {});\n`;
        const run = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, isolation);
        const why = "the option only would leave out other tests: all of them are to be run";
        assert.equal(only(run), `EXAMPLES/a.test.ts\n  ${why}`);
      });

      it("has a file without a test", () => {
        assert.match(
          told("empty.test.ts"),
          /^EXAMPLES\/empty\.test\.ts\n.*(it has no test|of its tests: it has none)/,
        );
        // those of the other files: it is not taken for a test itself
        assert.equal(together.tests, 9);
      });

      it("has no test of the name that was asked for", async () => {
        const { failures, complaints, tests } = await runOf({ "a.test.ts": PASSES }, isolation, {
          name: "^nobody$",
        });
        assert.deepEqual([failures, complaints, tests], [[], ["no test is called ^nobody$"], 0]);
      });

      it("has a file that is no TypeScript", () => {
        assert.match(
          unloaded("no-typescript.test.ts"),
          /^EXAMPLES\/no-typescript\.test\.ts\n(.*\n)*.*Expression expected/,
        );
      });

      it("has a file that throws after its first test", () => {
        assert.match(unloaded("throws.test.ts"), /^EXAMPLES\/throws\.test\.ts\n(.*\n)*.*too late/);
      });

      it("has a test that throws when it is over", async () => {
        const text = `it("is early", () => { setTimeout(() => { throw new Error("late one"); }, 5); });
          it("waits", () => new Promise((resolve) => setTimeout(resolve, 500)));`;
        const run = await runOf({ "a.test.ts": IMPORT + text }, isolation);
        assert.match(only(run), /^EXAMPLES\/a\.test\.ts.*\n.*Test "is early".*"Error: late one"/);
      });

      it("has a test that blocks its process", async () => {
        const text = `${IMPORT}const pause = () => new Promise((resolve) => setTimeout(resolve, 300));
          it("waits", pause); it("hangs", () => { ${BLOCKS} }); it("is innocent", () => {});`;
        const run = await runOf({ "a.test.ts": text }, isolation, { silenceMs: 8_000 });
        const why = "nothing was heard of any test for 8 s, and this test was under way";
        assert.equal(only(run), `EXAMPLES/a.test.ts: hangs\n  ${why}`);
        assert.match(run.failures[0]?.again ?? "", / --name '\^hangs\$'$/);
        // the process of the file, once the runner that started it is killed
        assert.equal(run.complaints.length, isolation === "none" ? 0 : 1, run.complaints.join("\n"));
      });

      it("has a test whose process is killed", async () => {
        const text = `${PASSES}it("dies", () => process.kill(process.pid, "SIGKILL"));`;
        const run = await runOf({ "a.test.ts": text }, isolation);
        const file = "EXAMPLES/a.test.ts";
        const alone = `  the process of ${file} ended with SIGKILL before it had told of all tests, and this test was under way`;
        const expected =
          isolation === "none"
            ? `${file}: dies\n${alone}`
            : `${file}\n  under way: dies\n  its process was ended by SIGKILL`;
        assert.equal(only(run), expected);
        assert.deepEqual(run.complaints, []);
      });

      it("is interrupted while a test blocks its process", async () => {
        const text = `${PASSES}it("hangs", () => { ${BEGINS} ${BLOCKS} });`;
        const { failures, complaints } = await runOf({ "a.test.ts": text }, isolation, {
          interrupt: "when begun",
        });
        const said = [...failures.flatMap(wordsOf), ...complaints].join("\n");
        assert.match(said, /a\.test\.ts: hangs\b/);
        assert.match(said, /again: .* --name '\^hangs\$'/);
        assert.match(said, /^it was interrupted$/m);
      });

      it("is interrupted before any test has begun", async () => {
        const text = `${IMPORT}it("hangs", () => { ${BLOCKS} });`;
        const { tests, complaints } = await runOf({ "a.test.ts": text }, isolation, { interrupt: "at once" });
        assert.deepEqual([tests, complaints], [0, ["it was interrupted"]]);
      });

      it("has a contract that another file runs: the test's file is named", () => {
        assert.equal(told("calls.test.ts"), "EXAMPLES/calls.test.ts: a store › holds\n  broken");
        const [{ again } = { again: "" }] = inFile(together, "calls.test.ts").failures;
        assert.match(again, /\/calls\.test\.ts --name '\^a store holds\$'$/);
        assert.ok(!JSON.stringify(together.slowest).includes("contract"));
      });

      it("has a promise that is rejected at the top level of a file", () => {
        assert.match(unloaded("rejected.test.ts"), /^EXAMPLES\/rejected\.test\.ts\n(.*\n)*.*nobody waits/);
      });

      it("has a subtest that fails, and says how it is run", async () => {
        const words = "EXAMPLES/subtest.test.ts: a suite › outer › inner\n  no";
        assert.equal(told("subtest.test.ts"), words);
        const [failure] = inFile(together, "subtest.test.ts").failures;
        const [, name = ""] = / --name '(.*)'$/.exec(failure?.again ?? "") ?? [];
        assert.equal(only(await runOf({ "subtest.test.ts": SUBTEST }, isolation, { name })), words);
      });

      if (isolation === "none") return;

      it("shows both values of an assertion", () => {
        const words = told("values.test.ts");
        assert.match(words, /\n {2}\+ .*two/);
        assert.match(words, /\n {2}- .*three/);
      });

      it("says of a hook before that fails how many tests it took with it", () => {
        assert.equal(
          told("before.test.ts"),
          "EXAMPLES/before.test.ts: a suite\n  nothing is there\n  3 tests were not run because of it",
        );
      });
    });
  }

  for (const hook of ["before", "beforeEach"])
    it(`has a ${hook} outside of a describe where files share a process: only its file fails`, async () => {
      const text = `import { ${hook}, it } from "node:test";\n${hook}(() => { throw new Error("no"); });\nit("x", () => {});`;
      const run = await runOf({ "a.test.ts": text, "b.test.ts": PASSES }, "none");
      const why = `not run: its hook ${hook} outside of a describe would be one of all files that share its process`;
      assert.equal(only(run), `EXAMPLES/a.test.ts\n  ${why}`);
      assert.equal(run.passed, 1);
    });

  it("has a process that was ended in a way that leaves no word", async () => {
    const text = `${PASSES}it("exits", () => process.reallyExit(0));\n`;
    const run = await runOf({ "a.test.ts": text }, "process");
    const why = "its process ended before it had told of its tests: it has none, or one of them ended it";
    assert.equal(only(run), `EXAMPLES/a.test.ts\n  under way: exits\n  ${why}`);
  });

  it("has only tests that were skipped", async () => {
    const { complaints } = await runOf(
      { "a.test.ts": `${IMPORT}it("x", { skip: "no part" }, () => {});` },
      "process",
    );
    assert.deepEqual(complaints, ["nothing passed: the one test skipped"]);
  });
});
