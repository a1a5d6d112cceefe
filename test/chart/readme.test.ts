// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { chartValues, withValues } from "../../scripts/chart-values.ts";

const chart = new URL("../../charts/berth/", import.meta.url);
const read = (file: string) => readFileSync(new URL(file, chart), "utf8");

describe("charts/berth/README.md", () => {
  it("is what `node scripts/chart-readme.ts --write` writes", () => {
    assert.equal(read("README.md"), withValues(read("README.md"), read("values.yaml")));
  });

  it("has each value once, with its words and what it is by default", () => {
    const values = chartValues(
      "# first\n\na:\n  # of b\n  # and more\n  b: [1, 2]\n  # of c | d\n  c: { d: x }\n# of e\ne: ''\n",
    );
    assert.deepEqual(values, [
      { path: "a.b", words: "of b and more", value: [1, 2] },
      { path: "a.c", words: "of c | d", value: { d: "x" } },
      { path: "e", words: "of e", value: "" },
    ]);
    const readme = withValues(read("README.md"), "# of a | b\na: x | y\n");
    assert.match(readme, /^\| `a` \| of a \\\| b \| `"x \\\| y"` \|$/m);
  });

  it("cannot be written without words for every value, nor without its marks", () => {
    assert.throws(() => chartValues("# of a\na: 1\nb: 2\n"), /values\.yaml: b has no comment/);
    assert.throws(() => chartValues("a: {}\n"), /values\.yaml: a has no comment/);
    assert.throws(() => withValues("# The chart\n", "# of a\na: 1\n"), /the README has no/);
  });
});
