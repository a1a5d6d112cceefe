// SPDX-License-Identifier: Apache-2.0
import { describe } from "node:test";
import fc from "fast-check";
import { listContract } from "./list.ts";
import { runBesideModel, type Step } from "./model.ts";
import { secondHandleContract } from "./second.ts";
import { caseOf, type Open } from "./subject.ts";
import { watchContract } from "./watch.ts";
import { writeContract } from "./write.ts";

export type { Open, Subject } from "./subject.ts";

const RUNS = 25;

/** Few names and nonces, so that steps meet. */
const anyStep: fc.Arbitrary<Step> = fc.record({
  verb: fc.constantFrom("create", "create", "get", "replace", "replace", "report", "remove", "list"),
  name: fc.constantFrom("a-0", "a-1", "b-0"),
  nonce: fc.constantFrom("n1", "n2", "n3"),
  seen: fc.constantFrom(0, 0, 0, 1, 2),
});

/**
 * What every store must do, written against the port alone. `open` gives an empty store for each case, in which
 * the namespaces of SAMPLE_NAMESPACES exist where the engine has such a thing.
 */
export function storeContract(name: string, open: Open): void {
  describe(`store contract: ${name}`, () => {
    writeContract(open);
    listContract(open);
    watchContract(open);
    secondHandleContract(open);
    caseOf(open, "gives a random run the results of a plain map", async ({ store }) => {
      const run = fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 40 }), (steps) =>
        runBesideModel(store, steps),
      );
      await fc.assert(run, { numRuns: RUNS, endOnFailure: true });
    });
  });
}
