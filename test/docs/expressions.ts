// SPDX-License-Identifier: Apache-2.0
// The PromQL of Berth's rules and dashboard, held against the metrics: Prometheus's own grammar says what is in it.
import { parser } from "@prometheus-io/lezer-promql";
import { collectDefaultMetrics, Registry } from "prom-client";
import { METRICS } from "../../system/metric-definitions.ts";
import type { Definition } from "../../system/metric-shape.ts";

interface Known {
  readonly type: string;
  readonly labels: readonly string[];
}

/** What a scrape adds: `node` the chart's PodMonitor. */
const FROM_SCRAPE = ["instance", "node", "le"];
const RATES = ["rate", "irate", "increase"];

type Node = ReturnType<typeof parser.parse>["topNode"];

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
  const backend = new Registry();
  collectDefaultMetrics({ register: backend });
  for (const { name, type } of await backend.getMetricsAsJSON()) {
    add(name, { type: String(type), labels: ["kind", "type", "space", "version"] });
  }
  return known;
}

/** What is wrong with an expression, in words; empty for one that can be evaluated. */
export function faultsIn(expression: string, known: ReadonlyMap<string, Known>): string[] {
  const parsed = new Parsed(expression);
  const broken = parsed.all().find((node) => node.type.isError);
  if (broken !== undefined) return [`it is no PromQL from character ${broken.from + 1} on`];
  return [
    ...parsed.metrics().flatMap((name) => (known.has(name) ? [] : [`there is no metric ${name}`])),
    ...faultsOfTypes(parsed, known),
    ...faultsOfRates(parsed, known),
    ...faultsOfQuantiles(parsed),
    ...faultsOfLabels(parsed, known),
  ];
}

/** Names of the metrics in it. */
export function namesIn(expression: string): string[] {
  return new Parsed(expression).metrics();
}

/** An expression and the tree of it. */
class Parsed {
  readonly #text: string;
  readonly #top: Node;

  constructor(text: string) {
    this.#text = text;
    this.#top = parser.parse(text).topNode;
  }

  text({ from, to }: Node): string {
    return this.#text.slice(from, to);
  }

  /** Nodes of that name, or all of them, at and below the one given. */
  all(name?: string, below: Node = this.#top): Node[] {
    const found: Node[] = [];
    below.cursor().iterate(({ node }) => {
      if (name === undefined || node.name === name) found.push(node);
    });
    return found;
  }

  /** Each once. */
  metrics(): string[] {
    return [...new Set(this.all("VectorSelector").map((selector) => this.metricOf(selector)))];
  }

  metricOf(selector: Node): string {
    const identifier = selector.getChild("Identifier");
    return identifier === null ? "" : this.text(identifier);
  }

  /** Calls of one of these functions. */
  calls(functions: readonly string[]): Node[] {
    return this.all("FunctionCall").filter((call) => functions.includes(this.functionOf(call)));
  }

  functionOf(call: Node): string {
    const identifier = call.getChild("FunctionIdentifier");
    return identifier === null ? "" : this.text(identifier);
  }

  names(below: Node): string[] {
    return this.all("LabelName", below).map((label) => this.text(label));
  }
}

function faultsOfTypes(parsed: Parsed, known: ReadonlyMap<string, Known>): string[] {
  const rated = new Set(parsed.calls(RATES).flatMap((call) => parsed.all("VectorSelector", call).map(at)));
  return parsed.all("VectorSelector").flatMap((selector) => {
    const name = parsed.metricOf(selector);
    const type = known.get(name)?.type;
    if (type === "histogram") return [`${name} is a histogram: it is asked for by _bucket, _count and _sum`];
    return type === "counter" && !rated.has(at(selector))
      ? [`${name} counts up: it says something by its rate`]
      : [];
  });
}

function faultsOfRates(parsed: Parsed, known: ReadonlyMap<string, Known>): string[] {
  return parsed.calls(RATES).flatMap((call) => {
    const selectors = parsed.all("VectorSelector", call);
    const gauges = selectors
      .map((selector) => parsed.metricOf(selector))
      .filter((name) => known.get(name)?.type !== "counter");
    return [
      ...(parsed.all("MatrixSelector", call).length === 1 ? [] : ["a rate has no range"]),
      ...gauges.map((name) => `${parsed.functionOf(call)}() of ${name}, which is no counter`),
    ];
  });
}

function faultsOfQuantiles(parsed: Parsed): string[] {
  return parsed.calls(["histogram_quantile"]).flatMap((call) => {
    const names = parsed.all("VectorSelector", call).map((selector) => parsed.metricOf(selector));
    const grouped = parsed.all("GroupingLabels", call).flatMap((labels) => parsed.names(labels));
    return [
      ...(names.some((name) => name.endsWith("_bucket")) ? [] : ["histogram_quantile() of no _bucket"]),
      ...(grouped.includes("le") ? [] : ["histogram_quantile() without le"]),
    ];
  });
}

function faultsOfLabels(parsed: Parsed, known: ReadonlyMap<string, Known>): string[] {
  const labelsOf = (name: string) => [...(known.get(name)?.labels ?? []), ...FROM_SCRAPE];
  const selectors = parsed.all("VectorSelector");
  const all = new Set(selectors.flatMap((selector) => labelsOf(parsed.metricOf(selector))));
  const grouped = parsed.all("GroupingLabels").flatMap((labels) => parsed.names(labels));
  const matched = selectors.flatMap((selector) => {
    const name = parsed.metricOf(selector);
    const unknown = parsed.names(selector).filter((label) => !labelsOf(name).includes(label));
    return unknown.map((label) => `${name} has no label ${label}`);
  });
  return [
    ...grouped.filter((label) => !all.has(label)).map((label) => `nothing in it has the label ${label}`),
    ...matched,
  ];
}

/** Two nodes of one tree are the same where they begin at the same place. */
function at({ from }: Node): number {
  return from;
}
