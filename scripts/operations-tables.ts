// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { LOG_KEYS } from "../allocator/base/log-keys.ts";
import { METRICS } from "../system/metric-definitions.ts";
import type { Definition } from "../system/metric-shape.ts";

interface Rule {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "action", string>>;
}

/** Name of a table, as its markers have it -> its lines. */
const TABLES: Readonly<Record<string, () => readonly string[]>> = {
  metrics: metricLines,
  alerts: alertLines,
  "log keys": logLines,
};

/** docs/operations.md with its tables as they must be; what is not between markers stays. Throws for markers that are missing. */
export function withTables(text: string): string {
  let whole = text;
  for (const [name, lines] of Object.entries(TABLES)) {
    const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
    const [from, to] = [whole.indexOf(begin), whole.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/operations.md has no ${begin.trim()} ... ${end}`);
    whole = `${whole.slice(0, from)}${begin}\n${lines().join("\n")}\n\n${whole.slice(to)}`;
  }
  return whole;
}

function metricLines(): readonly string[] {
  const rows = Object.entries<Definition>(METRICS).map(
    ([name, { type, by, labels, help }]) =>
      `| \`${name}\` | ${type} | ${by} | ${labels.join(", ")} | ${help} |`,
  );
  return ["| metric | type | of | labels | what it says |", "|---|---|---|---|---|", ...rows];
}

function alertLines(): readonly string[] {
  const file = new URL("../charts/berth/files/alerts.yaml", import.meta.url);
  const { groups } = parse(readFileSync(file, "utf8")) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) =>
    rules.flatMap(({ alert, labels, annotations }) => [
      `### ${alert}`,
      "",
      `*${labels.severity}.* ${plain(annotations.summary)} ${annotations.description}`,
      "",
      `What to do: ${annotations.action}`,
      "",
    ]),
  );
}

/** `{{ $labels.pool }}` -> `(pool)`: which one is for the alert to say. */
function plain(summary: string): string {
  const unnamed = summary.replaceAll("{{ or $labels.node $labels.instance }}", "a node");
  return unnamed.replaceAll(/\{\{\s*\$labels\.(\w+)\s*\}\}/g, "($1)");
}

function logLines(): readonly string[] {
  const rows = Object.entries(LOG_KEYS).map(([key, meaning]) => `| \`${key}\` | ${meaning} |`);
  return ["| key | what stands there |", "|---|---|", ...rows];
}
