// SPDX-License-Identifier: Apache-2.0
// What of the chart and the docs follows from the table of dialects (allocator/manifest/dialect-rows.ts).

import type { DialectRow } from "../allocator/manifest/dialect-row.ts";
import { DIALECT_ROWS } from "../allocator/manifest/dialect-rows.ts";
import { NAMED_ROWS, READ_ROWS } from "../allocator/manifest/dialects.ts";
import { GIVING_ROWS } from "../allocator/manifest/foreign-requests.ts";
import { SYSTEM_NAMES, SYSTEMS } from "../allocator/model/dialect.ts";
import { CONDITIONS, named, saying, VARIABLES } from "./dialect-expressions.ts";

/** The files, and how each is written from what it is. */
export const DIALECT_FILES: Readonly<Record<string, (text: string) => string>> = {
  "charts/berth/files/webhooks/mutating.yaml": withConditions,
  "charts/berth/files/webhooks/validating.yaml": withConditions,
  "charts/berth/files/policies/pods.yaml": withVariables,
  "charts/berth/files/dialects.yaml": () => keysBySystem(),
  "charts/berth/files/dialect-patterns.yaml": () => patternsBySystem(),
  "charts/berth/files/dialect-values.yaml": () => valuesBySystem(),
  "docs/dialects.md": withTable,
};

function withConditions(text: string): string {
  let webhook = "";
  return replaceExpressions(text, (line) => {
    const [, indent = "", name = ""] = /^( +)- name: (\S+)$/.exec(line) ?? [];
    if (indent.length === 2) webhook = name;
    return indent.length === 6 ? CONDITIONS[`${webhook} ${name}`] : undefined;
  });
}

function withVariables(text: string): string {
  return replaceExpressions(text, (line) => VARIABLES[/^ {4}- name: (\S+)$/.exec(line)?.[1] ?? ""]);
}

/** In the place of the folded text below each line that has one. */
function replaceExpressions(
  text: string,
  expressionAfter: (line: string) => (() => string) | undefined,
): string {
  const lines = text.split("\n");
  const written: string[] = [];
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n] ?? "";
    written.push(line);
    const expression = expressionAfter(line)?.();
    const head = lines[n + 1] ?? "";
    if (expression === undefined || !head.endsWith("expression: >-")) continue;
    const indent = " ".repeat(head.search(/\S/) + 2);
    written.push(head, ...folded(expression, indent));
    n++;
    while ((lines[n + 1] ?? "").startsWith(indent)) n++;
  }
  return written.join("\n");
}

const WIDTH = 120;

function folded(text: string, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(" ")) {
    const joined = line === indent ? `${line}${word}` : `${line} ${word}`;
    if (line !== indent && (joined.length > WIDTH || word === "||")) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = joined;
  }
  return [...lines, line];
}

/** What the chart takes out of the conditions, by its value `dialects`. */
function keysBySystem(): string {
  const lines = [
    "# SPDX-License-Identifier: Apache-2.0",
    "# Written by `node scripts/dialects.ts --write`: the annotations of each system that Berth reads.",
  ];
  for (const system of SYSTEM_NAMES) {
    const rows = [...READ_ROWS, ...GIVING_ROWS].filter((row) => row.system === system);
    const keys = [...new Set(rows.filter(({ matches }) => matches === undefined).map(({ key }) => key))];
    lines.push(`${system}:`, ...keys.map((key) => `  - ${key}`));
  }
  return `${lines.join("\n")}\n`;
}

/** The same of keys with names in them. */
function patternsBySystem(): string {
  const lines = [
    "# SPDX-License-Identifier: Apache-2.0",
    "# Written by `node scripts/dialects.ts --write`: how the chart's conditions find each system's annotations with names in them.",
  ];
  for (const system of SYSTEM_NAMES) {
    const [matches] = named(NAMED_ROWS.filter((row) => row.system === system));
    if (matches !== undefined) lines.push(`${system}: "${matches}"`);
  }
  return `${lines.join("\n")}\n`;
}

/** The same of keys that ask with some values only. */
function valuesBySystem(): string {
  const lines = [
    "# SPDX-License-Identifier: Apache-2.0",
    "# Written by `node scripts/dialects.ts --write`: how the chart's conditions find each system's annotations that ask with some values only.",
  ];
  for (const system of SYSTEM_NAMES) {
    const rows = READ_ROWS.filter((row) => row.system === system && row.containing !== undefined);
    const values = rows.map(({ key, containing = "" }) => `  - ${JSON.stringify(saying(key, containing))}`);
    if (values.length > 0) lines.push(`${system}:`, ...new Set(values));
  }
  return `${lines.join("\n")}\n`;
}

const BEGIN = "<!-- keys: written by `node scripts/dialects.ts --write` -->\n";
const END = "<!-- end of keys -->";

function withTable(text: string): string {
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/dialects.md has no ${BEGIN.trim()} ... ${END}`);
  return `${text.slice(0, from)}${BEGIN}\n${tableLines().join("\n")}\n\n${text.slice(to)}`;
}

function tableLines(): readonly string[] {
  return SYSTEM_NAMES.flatMap((system) => [
    `### ${SYSTEMS[system]}`,
    "",
    "| annotation | on | example | what it asks for | Berth |",
    "|---|---|---|---|---|",
    ...DIALECT_ROWS.filter((row) => row.system === system).map(tableRow),
    "",
  ]).slice(0, -1);
}

function tableRow({ key, on, example, means, refusal, beside }: DialectRow): string {
  const places = on.map((place) => (place === "pod" ? "pod, template" : place)).join(", ");
  const answer =
    refusal !== undefined
      ? `cannot serve it (a warning or a refusal, by \`webhook.foreignRequests\`): ${refusal}`
      : beside !== undefined
        ? `warns: ${beside}`
        : "serves it";
  return `| \`${key}\` | ${places} | \`${example}\` | ${means} | ${answer} |`;
}
