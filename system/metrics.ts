// SPDX-License-Identifier: Apache-2.0
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { BerthError } from "../allocator/base/errors.ts";
import type { Collect, Labels, Logger, Metrics, Sample } from "../allocator/base/ports.ts";
import { METRICS } from "./metric-definitions.ts";
import type { Definition } from "./metric-shape.ts";

/**
 * The `Metrics` port with a way out. Every verb throws BerthError INTERNAL for a name that METRICS does not have,
 * a verb that is not the metric's, labels that are not the declared ones, and a value that is no finite number.
 */
export interface MetricsRegistry extends Metrics {
  /** A `collect` that fails is logged and adds nothing to the gauge. */
  gauge(name: string, collect: Collect): void;
  /** From here on also those of this process: CPU, memory, event loop, garbage collection (`process_`, `nodejs_`). */
  watchProcess(): void;
  /** The text format of Prometheus. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/** Metrics of one process, in a registry of their own: those of the part that it is; of a process that is both, all. */
export function createMetrics(log: Logger, part?: "webhook" | "agent"): MetricsRegistry {
  const backend = new Registry();
  const counters = new Map<string, Counter>(); // name -> counter
  const histograms = new Map<string, Histogram>(); // name -> histogram
  const sources = new Map<string, Collect[]>(); // name of a gauge -> who is asked
  for (const [name, definition] of definitions()) {
    if (part !== undefined && definition.by !== part && definition.by !== "both") continue;
    const configuration = configure(name, definition, backend);
    if (definition.type === "counter") counters.set(name, new Counter(configuration));
    if (definition.type === "histogram") histograms.set(name, new Histogram(configuration));
  }
  return {
    increment(name, labels = {}) {
      checkLabels(name, "counter", labels);
      counters.get(name)?.inc(labels);
    },
    observe(name, value, labels = {}) {
      checkLabels(name, "histogram", labels);
      checkValue(name, value);
      histograms.get(name)?.observe(labels, value);
    },
    gauge(name, collect) {
      const definition = define(name, "gauge");
      const asked = sources.get(name);
      if (asked !== undefined) {
        asked.push(collect);
        return;
      }
      const all = [collect];
      sources.set(name, all);
      const gauge: Gauge = new Gauge({
        ...configure(name, definition, backend),
        collect: () => refresh({ name, gauge, all, log }),
      });
    },
    watchProcess() {
      collectDefaultMetrics({ register: backend });
    },
    async expose() {
      return { contentType: backend.contentType, body: await backend.metrics() };
    },
  };
}

interface Refreshed {
  readonly name: string;
  readonly gauge: Gauge;
  readonly all: readonly Collect[];
  readonly log: Logger;
}

/** Reads first and replaces then, in one go: two scrapes at a time do not mix. */
async function refresh({ name, gauge, all, log }: Refreshed): Promise<void> {
  const gathered = await Promise.all(
    all.map((collect) =>
      gather(name, collect).catch((error: unknown) => {
        log.warn("metric could not be collected", { metric: name, error });
        return [];
      }),
    ),
  );
  gauge.reset();
  gauge.remove({}); // reset leaves a zero in a gauge without labels, which nobody measured
  for (const { labels, value } of gathered.flat()) gauge.set(labels, value);
}

async function gather(name: string, collect: Collect): Promise<readonly Sample[]> {
  const samples = [...(await collect())];
  for (const { labels, value } of samples) {
    checkLabels(name, "gauge", labels);
    checkValue(name, value);
  }
  return samples;
}

function definitions(): readonly (readonly [string, Definition])[] {
  return Object.entries(METRICS);
}

function configure(name: string, definition: Definition, backend: Registry) {
  return {
    name,
    help: definition.help,
    labelNames: [...definition.labels],
    registers: [backend],
    ...(definition.buckets === undefined ? {} : { buckets: [...definition.buckets] }),
  };
}

function define(name: string, type: Definition["type"]): Definition {
  const definition: Definition | undefined = Object.hasOwn(METRICS, name)
    ? METRICS[name as keyof typeof METRICS]
    : undefined;
  if (definition === undefined) throw new BerthError("INTERNAL", `there is no metric ${name}`);
  if (definition.type !== type) throw new BerthError("INTERNAL", `metric ${name} is no ${type}`);
  return definition;
}

function checkLabels(name: string, type: Definition["type"], labels: Labels): void {
  const declared = define(name, type).labels;
  const given = Object.keys(labels);
  if (given.length === declared.length && declared.every((label) => Object.hasOwn(labels, label))) return;
  throw new BerthError("INTERNAL", `metric ${name} has the labels [${declared}], not [${given}]`);
}

function checkValue(name: string, value: number): void {
  if (!Number.isFinite(value)) throw new BerthError("INTERNAL", `metric ${name} cannot be ${value}`);
}
