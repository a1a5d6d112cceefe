// SPDX-License-Identifier: Apache-2.0
// Each bug of cluster-bugs-mutations.ts is put in, for one process: its test in cluster-bugs.api-test.ts must notice.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { run } from "../support/process.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CLUSTER_MUTATIONS, type ClusterMutation } from "./cluster-bugs-mutations.ts";

const MUTATE = new URL("./cluster-bugs-mutate.ts", import.meta.url).href;
const TESTS = fileURLToPath(new URL("./cluster-bugs.api-test.ts", import.meta.url));
/** Some mutations make a test wait for ever. */
const LIMIT_MS = 90_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  /** Runs the tests whose names begin so, with the mutation. */
  async function runWith({ name, test }: ClusterMutation) {
    const how = ["--test-reporter=tap", `--test-timeout=${LIMIT_MS}`, `--test-name-pattern=^${test}`];
    const { NODE_TEST_CONTEXT: _, ...own } = process.env as Record<string, string>;
    const env = { ...own, BERTH_MUTATION: name };
    const { stdout, stderr } = await run(process.execPath, ["--import", MUTATE, ...how, TESTS], { env });
    const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, "m").exec(stdout)?.[1]);
    return { passed: count("pass"), failed: count("fail") + count("cancelled"), printed: stdout + stderr };
  }

  describe("a bug of the catalogue that is put in", () => {
    for (const mutation of CLUSTER_MUTATIONS) {
      const { name, file, harmless = false } = mutation;
      it(`${name} in ${file} is ${harmless ? "no guard that anything rests on" : "noticed"}`, async () => {
        const { passed, failed, printed } = await runWith(mutation);
        assert.equal(passed + failed, 1, printed);
        assert.equal(failed, harmless ? 0 : 1, printed);
        assert.doesNotMatch(printed, /its place is gone|SyntaxError/);
      });
    }
  });
}
