// SPDX-License-Identifier: Apache-2.0
// Every link of a document to a file of this repository, or to a heading of one, leads somewhere.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, it } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENTS = globSync(
  ["*.md", "docs/**/*.md", "test/**/*.md", "examples/**/*.md", "ipam-plugin/**/*.md", "charts/**/*.md"],
  { cwd: ROOT },
).toSorted();
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** As GitHub makes anchors of headings. */
function anchorsOf(path: string): ReadonlySet<string> {
  const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase());
  return new Set(headings.map((heading) => heading.replaceAll(/[^\w\- ]/g, "").replaceAll(" ", "-")));
}

describe("documents", () => {
  assert.ok(DOCUMENTS.length > 15);
  for (const document of DOCUMENTS) {
    it(`${document} links to what is there`, () => {
      for (const [, file = "", anchor] of read(document).matchAll(/\]\(([^)#\s]*)(?:#([^)]+))?\)/g)) {
        if (/^\w+:/.test(file)) continue;
        const target = file === "" ? document : normalize(join(dirname(document), file));
        assert.ok(existsSync(join(ROOT, target)), target);
        if (anchor !== undefined) assert.ok(anchorsOf(target).has(anchor), `${target}#${anchor}`);
      }
    });
  }
});
