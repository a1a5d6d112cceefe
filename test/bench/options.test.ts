// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readOptions } from "./options.ts";

const KNOWN = ["add", "parallel"];

describe("readOptions", () => {
  it("runs everything in full unless told otherwise", () => {
    assert.deepEqual(readOptions([], KNOWN), { quick: false, only: undefined });
  });

  it("takes names one by one and separated by commas", () => {
    assert.deepEqual(readOptions(["--quick", "--only", "add", "--only", "parallel"], KNOWN), {
      quick: true,
      only: ["add", "parallel"],
    });
    assert.deepEqual(readOptions(["--only", "parallel,add"], KNOWN).only, ["parallel", "add"]);
  });

  it("refuses what it does not know", () => {
    assert.throws(
      () => readOptions(["--only", "dell"], KNOWN),
      new TypeError("there is no figure dell; there are add, parallel"),
    );
    assert.throws(() => readOptions(["--fast"], KNOWN), /Unknown option '--fast'/);
    assert.throws(() => readOptions(["add"], KNOWN), /Unexpected argument 'add'/);
  });
});
