// SPDX-License-Identifier: Apache-2.0
// Calico, kube-ovn, Antrea and whereabouts have kinds called IPPool, too: what is done to all of them must name the group.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENTS = globSync(["README.md", "docs/*.md", "charts/**/*.md"], { cwd: ROOT });

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
