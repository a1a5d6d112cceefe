// SPDX-License-Identifier: Apache-2.0
// As much of PromQL as Berth's rules and dashboard are written in: enough to hold them against the metrics.
import { collectDefaultMetrics, Registry } from "prom-client";
import { type Definition, METRICS } from "../../system/metric-table.ts";

interface Known {
  readonly type: string;
  readonly labels: readonly string[];
}

/** What a scrape adds: `node` the chart's PodMonitor. */
const FROM_SCRAPE = ["instance", "node", "le"];
const KEYWORDS = new Set(["and", "or", "unless", "bool", "offset"]);
const GROUPING = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const MATCHERS = /([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}/g;

/** Every metric that Berth's processes expose, and its type; a histogram by the names that it is queried by too. */
export async function knownMetrics(): Promise<ReadonlyMap<string, Known>> {
  const known = new Map<string, Known>();
  const add = (name: string, { type, labels }: Known) => {
    known.set(name, { type, labels });
    if (type !== "histogram") return;
    for (const suffix of ["_bucket", "_count", "_sum"])
      known.set(`${name}${suffix}`, { type: "counter", labels });
  };
  for (const [name, definition] of Object.entries<Definition>(METRICS)) add(name, definition);
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const { name, type } of await registry.getMetricsAsJSON()) {
    add(name, { type: String(type), labels: ["kind", "type", "space", "version"] });
  }
  return known;
}

/** What is wrong with an expression, in words; empty for one that can be evaluated. */
export function faultsIn(expression: string, known: ReadonlyMap<string, Known>): string[] {
  const bare = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  return [
    ...(isBalanced(bare) ? [] : ["its brackets do not match"]),
    ...namesIn(bare).flatMap((name) => (known.has(name) ? [] : [`there is no metric ${name}`])),
    ...faultsOfTypes(bare, known),
    ...faultsOfQuantiles(bare),
    ...faultsOfLabels(bare, known),
  ];
}

/** Names of the metrics in it. */
export function namesIn(expression: string): string[] {
  const rest = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, " ")
    .replaceAll(GROUPING, " ");
  const words = [...rest.matchAll(/\b([a-zA-Z_][\w:]*)\b(?!\s*\()/g)].map(([, word = ""]) => word);
  return [...new Set(words.filter((word) => !KEYWORDS.has(word)))];
}

function faultsOfTypes(bare: string, known: ReadonlyMap<string, Known>): string[] {
  const faults: string[] = [];
  const rated = new Set<string>();
  for (const [, verb = "", name = ""] of bare.matchAll(
    /\b(rate|irate|increase)\(\s*([a-zA-Z_][\w:]*)(?:\{[^}]*\})?\s*\[\w+\]\s*\)/g,
  )) {
    rated.add(name);
    if (known.get(name)?.type !== "counter") faults.push(`${verb}() of ${name}, which is no counter`);
  }
  for (const name of namesIn(bare)) {
    const type = known.get(name)?.type;
    if (type === "counter" && !rated.has(name))
      faults.push(`${name} counts up: it says something by its rate`);
    if (type === "histogram")
      faults.push(`${name} is a histogram: it is asked for by _bucket, _count and _sum`);
  }
  const rates = bare.match(/\b(?:rate|irate|increase)\(/g)?.length ?? 0;
  if (rates !== [...bare.matchAll(/\b(?:rate|irate|increase)\([^()]*\[\w+\]\s*\)/g)].length)
    faults.push("a rate has no range");
  return faults;
}

function faultsOfQuantiles(bare: string): string[] {
  if (!bare.includes("histogram_quantile(")) return [];
  return [
    ...(/_bucket\b/.test(bare) ? [] : ["histogram_quantile() of no _bucket"]),
    ...(/\bby\s*\([^)]*\ble\b/.test(bare) ? [] : ["histogram_quantile() without le"]),
  ];
}

function faultsOfLabels(bare: string, known: ReadonlyMap<string, Known>): string[] {
  const labelsOf = (name: string) => [...(known.get(name)?.labels ?? []), ...FROM_SCRAPE];
  const all = new Set(namesIn(bare).flatMap(labelsOf));
  const grouped = [...bare.matchAll(GROUPING)].flatMap(([, , labels = ""]) => labels.match(/\w+/g) ?? []);
  const matched = [...bare.matchAll(MATCHERS)].flatMap(([, name = "", matchers = ""]) => {
    const labels = [...matchers.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label);
    return labels
      .filter((label) => !labelsOf(name).includes(label))
      .map((label) => `${name} has no label ${label}`);
  });
  const unknown = grouped.filter((label) => !all.has(label));
  return [...unknown.map((label) => `nothing in it has the label ${label}`), ...matched];
}

function isBalanced(text: string): boolean {
  const open: string[] = [];
  const pairs: Readonly<Record<string, string>> = { ")": "(", "]": "[", "}": "{" };
  for (const character of text) {
    if ("([{".includes(character)) open.push(character);
    else if (character in pairs && open.pop() !== pairs[character]) return false;
  }
  return open.length === 0;
}
