// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { withDropIns } from "../../scripts/drop-ins.ts";

describe("docs/drop-ins.md", () => {
  it("has the table of the code", () => {
    const text = readFileSync(new URL("../../docs/drop-ins.md", import.meta.url), "utf8");
    assert.equal(text, withDropIns(text), "run: node scripts/drop-ins.ts --write");
  });
});
