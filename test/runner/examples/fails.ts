// SPDX-License-Identifier: Apache-2.0
// For run.test.ts: tests of which some fail.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

describe("sums", () => {
  it("are right", () => assert.equal(1 + 1, 2));
  it("are wrong (it's meant so)", () => assert.equal(1 + 1, 3, "one and one\nare two"));
  it("are left out", { skip: "nobody wants them" }, () => {});
});
