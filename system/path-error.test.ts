// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describePathError } from "./path-error.ts";

const errorOf = (code: string) => Object.assign(new Error(code), { code, syscall: "open", path: "/data/x" });

describe("describePathError", () => {
  for (const [code, words] of [
    ["EACCES", "you may not use it; run as a user who may, or name another path"],
    ["ENOSPC", "the disk is full; free some space on it, or name a path on another disk"],
    ["EROFS", "its file system is read-only; mount it for writing, or name another path"],
  ] as const) {
    it(`tells what to do about ${code}`, () => {
      assert.equal(describePathError(errorOf(code)), `/data/x cannot be used (${code}): ${words}`);
    });
  }

  it("knows nothing of other errors", () => {
    assert.equal(describePathError(errorOf("EWHATEVER")), undefined);
    assert.equal(describePathError(Object.assign(new Error(), { code: "ENOENT" })), undefined);
    assert.equal(describePathError(new TypeError("x is undefined")), undefined);
    assert.equal(describePathError("ENOENT"), undefined);
  });
});
