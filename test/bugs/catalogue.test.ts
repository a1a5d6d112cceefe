// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { MUTATIONS } from "./mutations.ts";

const DOCUMENT = new URL("../../docs/reliability.md", import.meta.url);

interface Row {
  readonly mutations: readonly string[];
  readonly tests: readonly string[];
}

/** Bug -> what the table says of it. */
function rowsInDocument(): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  const cells = /^\| (B\d+) \| [^|]+ \| [^|]+ \| ([^|]*) \| ([^|]*) \|$/gm;
  for (const [, bug = "", mutations = "", tests = ""] of readFileSync(DOCUMENT, "utf8").matchAll(cells)) {
    assert.ok(!rows.has(bug), `${bug} stands there twice`);
    rows.set(bug, {
      mutations: mutations.split(", ").sort(),
      tests: tests.replaceAll("`", "").split(", ").sort(),
    });
  }
  return rows;
}

/** `B11` of `B11-sync`. */
function bugOf(mutation: string): string {
  return mutation.split("-")[0] ?? "";
}

function rowsInMutations(): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  for (const bug of new Set(MUTATIONS.map(({ name }) => bugOf(name)))) {
    const its = MUTATIONS.filter(({ name }) => name === bug || name.startsWith(`${bug}-`));
    rows.set(bug, {
      mutations: its.map(({ name }) => name).sort(),
      tests: [...new Set(its.map(({ caughtBy }) => caughtBy))].sort(),
    });
  }
  return rows;
}

describe("docs/reliability.md", () => {
  it("has every bug from B1 to B18 once, with the mutations and tests that there are", () => {
    const rows = rowsInDocument();
    assert.deepEqual(
      [...rows.keys()],
      Array.from({ length: 18 }, (_, i) => `B${i + 1}`),
    );
    assert.deepEqual(rows, rowsInMutations());
  });

  it("says of exactly those that no test notices that they cannot occur", () => {
    const text = readFileSync(DOCUMENT, "utf8");
    const impossible = [...text.matchAll(/^\| (B\d+) \|.*\| cannot occur: /gm)].map(([, bug]) => bug);
    assert.deepEqual(impossible, [
      ...new Set(MUTATIONS.filter(({ harmless }) => harmless === true).map(({ name }) => bugOf(name))),
    ]);
  });
});
