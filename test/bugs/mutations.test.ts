// SPDX-License-Identifier: Apache-2.0
// Each bug of the catalogue is put into Berth, for one process, and the test that is there for it must notice.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { compileCache, run } from "../support/process.ts";
import { isFull, skipAllBut } from "../support/runs.ts";
import { MUTATIONS, type Mutation } from "./mutations.ts";

const MUTATE = new URL("./mutate.ts", import.meta.url).href;
/** Some mutations make a test wait for ever. */
const LIMIT_MS = 15_000;

const skipped = (mutation: Mutation) => skipAllBut(4, MUTATIONS.length, MUTATIONS.indexOf(mutation));
const HERE = MUTATIONS.filter((mutation) => skipped(mutation) === false);

interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly printed: string;
}

/** Runs the tests of a file whose names begin so, with a mutation or as they are. */
async function runTests(file: string, begin: string, mutation?: Mutation): Promise<Outcome> {
  const how = ["--test-reporter=tap", `--test-timeout=${LIMIT_MS}`, `--test-name-pattern=^${begin}`];
  const with_ = mutation === undefined ? [] : ["--import", MUTATE];
  const path = fileURLToPath(new URL(file, import.meta.url));
  const env = { ...compileCache(), PATH: "/usr/bin:/bin", BERTH_MUTATION: mutation?.name ?? "" };
  const { stdout, stderr } = await run(process.execPath, [...with_, ...how, path], { env });
  const count = (what: string) =>
    Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1] ?? Number.NaN);
  return { passed: count("pass"), failed: count("fail") + count("cancelled"), printed: `${stdout}${stderr}` };
}

describe("a bug of the catalogue that is put in", () => {
  // in short the same command runs these files as they are, in another group
  before(async () => {
    if (!isFull) return;
    const files = [...new Set(HERE.map(({ caughtBy }) => caughtBy))];
    for (const file of files) {
      const { passed, failed, printed } = await runTests(file, "B");
      assert.ok(passed > 0 && failed === 0, printed);
    }
  });

  for (const mutation of MUTATIONS) {
    const { name, file, caughtBy, test, harmless = false } = mutation;
    const skip = skipped(mutation);
    it(`${name} in ${file} is ${harmless ? "no guard that anything rests on" : `noticed by ${caughtBy}`}`, {
      skip,
    }, async () => {
      const { passed, failed, printed } = await runTests(caughtBy, test, mutation);
      assert.equal(passed + failed, 1, printed);
      assert.equal(failed, harmless ? 0 : 1, printed);
      assert.doesNotMatch(printed, /its place is gone|SyntaxError/);
    });
  }
});
