// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const FOLDER = import.meta.dirname;

/** IDs of end-to-end cases in the tests -> title; empty where the title is put together when the test runs. */
function casesInTests(): ReadonlyMap<string, string> {
  const cases = new Map<string, string>();
  for (const file of globSync("**/*{.,.cluster-}test.ts", { cwd: FOLDER })) {
    const source = readFileSync(join(FOLDER, file), "utf8");
    for (const [, id = "", title = ""] of source.matchAll(/\bit\(\s*"([CE]\d{4}) ([^"]+)"/g))
      add(cases, id, title);
    for (const [, id = ""] of source.matchAll(/\bid: "([CE]\d{4})"/g)) add(cases, id, "");
  }
  return cases;
}

function add(cases: Map<string, string>, id: string, title: string): void {
  assert.ok(!cases.has(id), `${id} is given twice`);
  cases.set(id, title);
}

describe("test/README.md", () => {
  it("lists every end-to-end case once, under its own title", () => {
    const inTests = casesInTests();
    const inTable = new Map<string, string>(); // ID -> title
    const text = readFileSync(join(FOLDER, "README.md"), "utf8");
    for (const [, id = "", title = ""] of text.matchAll(/^\| ([CE]\d{4}) \| (.+) \|$/gm)) {
      add(inTable, id, inTests.get(id) === "" ? "" : title);
    }
    assert.ok(inTests.size > 50);
    const differences = [...new Set([...inTable.keys(), ...inTests.keys()])]
      .filter((id) => inTable.get(id) !== inTests.get(id))
      .map(
        (id) =>
          `${id}: "${inTable.get(id) ?? "not there"}" in README.md, "${inTests.get(id) ?? "no test"}" in the tests`,
      );
    assert.deepEqual(differences, []);
  });
});
