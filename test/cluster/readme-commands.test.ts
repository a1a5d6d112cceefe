// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { commandsOf } from "./readme-commands.ts";

const DOCUMENT = `# Title
## Before
    not this
## In a cluster
Words.

\`\`\`
one   # a comment
two \\
  more
\`\`\`

\`\`\`yaml
kind: Pod
\`\`\`

    three <<'EOF'
    text
    EOF

\`\`\`console
$ four \\
    and more
printed
$ five
printed
\`\`\`
## After
    nor this
`;

it("finds what a reader types, and not what he sees", () => {
  assert.deepEqual(commandsOf(DOCUMENT, "In a cluster"), [
    "one   # a comment\ntwo \\\n  more",
    "three <<'EOF'\ntext\nEOF",
    "four \\\n    and more\nfive",
  ]);
});

it("says so when there is no such section", () => {
  assert.throws(() => commandsOf(DOCUMENT, "Elsewhere"), /no section "## Elsewhere"/);
});

it("finds commands in the README", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  assert.ok(commandsOf(readme, "In a cluster").length > 0);
});
