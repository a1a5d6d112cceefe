// SPDX-License-Identifier: Apache-2.0
// For run.test.ts: a hook that fails, and with it tests that are not run.
import { before, describe, it } from "node:test";

describe("a suite", () => {
  before(() => {
    throw new Error("nothing is there");
  });
  it("is not run", () => {});
  it("is not run either", () => {});
});
