// SPDX-License-Identifier: Apache-2.0
// A suite that is left out whole. Run by run.test.ts.
import { describe, it } from "node:test";

it("passes", () => {});
describe("what nobody can run here", { skip: "it needs another machine" }, () => {
  it("does one thing", () => {});
  it("does another", () => {});
});
