// SPDX-License-Identifier: Apache-2.0
// One test that takes as long as it is let. Run by run.test.ts.
import assert from "node:assert/strict";
import { it } from "node:test";

it("goes on and on", async () => {
  for (let round = 0; round < 600; round++) await new Promise((resolve) => setTimeout(resolve, 1000));
  assert.fail("nobody ended it");
});
