// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describePathError, isAbsence, noneIfAbsent } from "./path-error.ts";

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

describe("isAbsence", () => {
  it("tells what is not there from what cannot be read", () => {
    for (const code of ["ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG"])
      assert.equal(noneIfAbsent("none")(errorOf(code)), "none");
    for (const error of [errorOf("EMFILE"), errorOf("EIO"), errorOf("EACCES"), new Error("ENOENT")]) {
      assert.equal(isAbsence(error), false);
      assert.throws(() => noneIfAbsent("none")(error), error);
    }
  });
});
