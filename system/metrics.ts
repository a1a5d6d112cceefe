// SPDX-License-Identifier: Apache-2.0
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { BerthError } from "../allocator/errors.ts";
import type { Labels, Logger, Metrics } from "../allocator/ports.ts";

interface Definition {
  readonly type: "counter" | "histogram" | "gauge";
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds, seconds; of a histogram. */
  readonly buckets?: readonly number[];
}

/** An admission in memory takes about 1 ms; the API server gives up after 10 s unless told otherwise. */
const ADMISSION_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** An ADD from memory takes less than 1 ms; one that waits for its binding up to 5 s. */
const CNI_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Every metric that a part of Berth exposes; a name that is not here cannot be counted. */
export const METRICS = {
  berth_admission_reviews_total: {
    type: "counter",
    help: "Admission reviews by outcome (allowed, patched, denied, errored, unreadable) and code of the refusal or fault",
    labels: ["route", "operation", "outcome", "code"],
  },
  berth_admission_duration_seconds: {
    type: "histogram",
    help: "Time to decide one admission review, without reading its body",
    labels: ["route"],
    buckets: ADMISSION_SECONDS,
  },
  berth_reservations: { type: "gauge", help: "Addresses that are taken, cooling ones too", labels: [] },
  berth_claims: { type: "gauge", help: "Claims that exist", labels: [] },
  berth_pool_addresses: {
    type: "gauge",
    help: "Addresses of a pool by family and state",
    labels: ["pool", "family", "state"],
  },
  berth_reaper_released_total: {
    type: "counter",
    help: "Reservations and claims that the reaper gave back, by reason",
    labels: ["reason"],
  },
  berth_cni_requests_total: {
    type: "counter",
    help: "CNI requests by verb and outcome",
    labels: ["verb", "outcome"],
  },
  berth_cni_duration_seconds: {
    type: "histogram",
    help: "Time to answer one CNI request, in the agent",
    labels: ["verb"],
    buckets: CNI_SECONDS,
  },
  berth_store_conflicts_total: {
    type: "counter",
    help: "Writes that found another revision than they had read",
    labels: [],
  },
} as const satisfies Record<string, Definition>;

/** One value of a gauge; `labels` are exactly those that METRICS declares. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** Asked at every scrape; what it does not name any more is no longer exposed. */
export type Collect = () => Iterable<Sample> | Promise<Iterable<Sample>>;

/**
 * The `Metrics` port with a way out. Every verb throws BerthError INTERNAL for a name that METRICS does not have,
 * a verb that is not the metric's, labels that are not the declared ones, and a value that is no finite number.
 */
export interface MetricsRegistry extends Metrics {
  /** Once for each gauge. A `collect` that fails is logged and leaves the gauge without values. */
  gauge(name: string, collect: Collect): void;
  /** The text format of Prometheus. */
  expose(): Promise<{ readonly contentType: string; readonly body: string }>;
}

/** Metrics of one process, in a registry of their own. */
export function createMetrics(log: Logger): MetricsRegistry {
  const registry = new Registry();
  const counters = new Map<string, Counter>(); // name -> counter
  const histograms = new Map<string, Histogram>(); // name -> histogram
  const gauges = new Set<string>(); // names
  for (const [name, definition] of definitions()) {
    const configuration = configure(name, definition, registry);
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
      if (gauges.has(name)) throw new BerthError("INTERNAL", `metric ${name} is collected twice`);
      gauges.add(name);
      const gauge: Gauge = new Gauge({
        ...configure(name, definition, registry),
        collect: () => refresh({ name, gauge, collect, log }),
      });
    },
    async expose() {
      return { contentType: registry.contentType, body: await registry.metrics() };
    },
  };
}

/** Reads first and replaces then, in one go: two scrapes at a time do not mix. */
async function refresh(of: { name: string; gauge: Gauge; collect: Collect; log: Logger }): Promise<void> {
  const { name, gauge, collect, log } = of;
  const samples = await gather(name, collect).catch((error: unknown) => {
    log.warn("metric could not be collected", { metric: name, error });
    return [];
  });
  gauge.reset();
  gauge.remove({}); // reset leaves a zero in a gauge without labels, which nobody measured
  for (const { labels, value } of samples) gauge.set(labels, value);
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

function configure(name: string, definition: Definition, registry: Registry) {
  return {
    name,
    help: definition.help,
    labelNames: [...definition.labels],
    registers: [registry],
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
