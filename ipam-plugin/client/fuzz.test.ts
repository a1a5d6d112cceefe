// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { runsOf } from "../../test/support/runs.ts";

const INPUTS = runsOf(100_000);
const program = ["-x", "c", "-o", "/dev/null", "-"];
const sanitizers = spawnSync("cc", ["-fsanitize=address,undefined", ...program], {
  input: "int main(void) { return 0; }",
});
const skip = sanitizers.status === 0 ? false : "cc has no address and undefined-behaviour sanitizers here";

describe("CNI binary under sanitizers", () => {
  it("survives frames, environments and whole calls that nobody sends", { skip }, async () => {
    const args = ["-s", "--no-print-directory", "-C", import.meta.dirname, "fuzz-thrown", `INPUTS=${INPUTS}`];
    const { stdout } = await promisify(execFile)("make", args);
    const found = ["frames", "calls"].map((target) => `${target}: ${INPUTS} inputs, nothing found\n`);
    assert.equal(stdout, found.join(""));
  });
});
