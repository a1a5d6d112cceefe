// SPDX-License-Identifier: Apache-2.0
// Calico, kube-ovn, Antrea and whereabouts have kinds called IPPool, too: what is done to all of them must name the group.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENTS = globSync(["README.md", "docs/*.md", "charts/**/*.md"], { cwd: ROOT });

/** What prints commands, too. */
const PRINTED = globSync(
  [
    "charts/berth/files/alerts.yaml",
    "charts/berth/templates/NOTES.txt",
    "scripts/error-texts.ts",
    "{allocator,cli,ipam-plugin,webhook}/**/*.ts",
  ],
  { cwd: ROOT },
);
/** With Calico's API server kubectl takes `ippool` for Calico's. */
const OF_A_POOL =
  /\bkubectl (?:-n \S+ )?(?:get|describe|patch|edit|delete|label|annotate|wait|explain) [^`]*?(?<=[ ,])ippools?(?:\.spec)?(?=[ ,`.;)"]|$)(?!\.[a-z])(?!.*--api-version)/;

/** Commands that reach every object of a kind, or what such a command lists. */
const OF_ALL = /\bkubectl (?:get|delete|wait|patch)\b.*(?: --all\b| \| *xargs\b| > )/;

describe("commands for all pools, claims or blocks", () => {
  const commands = DOCUMENTS.flatMap((document) =>
    readFileSync(join(ROOT, document), "utf8")
      .split("\n")
      .filter((line) => OF_ALL.test(line) && /\bip(?:pool|claim|block)s?\b/.test(line)),
  );

  it("name the group, so that those of another system are left alone", () => {
    assert.ok(commands.length >= 6, commands.join("\n"));
    for (const command of commands)
      for (const [, kind] of command.matchAll(/[ ,](ip(?:pool|claim|block)s?)(?=[ ,])/g))
        assert.fail(`${kind} is without its group: ${command}`);
  });
});

describe("commands for a pool", () => {
  it("name the group", () => {
    for (const file of [...DOCUMENTS, ...PRINTED])
      for (const line of readFileSync(join(ROOT, file), "utf8").split("\n"))
        assert.doesNotMatch(line.replace(/ # .*/, ""), OF_A_POOL, `${file}: a pool is without its group`);
  });
});
