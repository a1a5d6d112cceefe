// SPDX-License-Identifier: Apache-2.0
// Where files share a process, one `.only` would leave out the tests of all other files, unseen. It is told and refused.
import { describe, it, suite, test } from "node:test";
import { fromRoot, ownFileOr, placesOf, tell, testFileOf } from "./tell.ts";

for (const define of new Set([describe, it, suite, test]))
  Object.defineProperty(define, "only", {
    value: () => {
      const [, , ...callers] = (new Error().stack ?? "").split("\n");
      const places = placesOf(callers.join("\n"));
      const [first = "an unknown place"] = places;
      const message = `.only at ${fromRoot(first)} would leave out other tests: all of them are to be run`;
      tell({ kind: "exit", file: ownFileOr(testFileOf(places)), message });
      throw new Error(message);
    },
  });
