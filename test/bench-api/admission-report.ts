// SPDX-License-Identifier: Apache-2.0
import { barChart } from "../bench/chart.ts";
import type { Figure, Plot } from "../bench/figure.ts";
import { formatFixed, formatNumber, formatPart } from "../bench/number-format.ts";
import { median, summarise } from "../bench/statistics.ts";
import { type Histogram, limitOf, meanOf, together } from "./histogram.ts";

/** `noop`: shown to a webhook that does nothing; `again`: its claim exists, as an ordinal's does. */
export type PodKind = "noop" | "new" | "again";

export interface AdmissionLoad {
  readonly kind: PodKind;
  /** Pods in a second, as they were due. */
  readonly perSecond: number;
  readonly rounds: readonly {
    /** The API server's own, in seconds: for the mutating webhook, and for the validating one, which looks once more. */
    readonly waits: Histogram;
    readonly checks: Histogram;
    /** Of each pod's creation, from the moment at which it was due; milliseconds. */
    readonly times: readonly number[];
    /** Pods that were not created. */
    readonly refused: number;
    /** Pods in a second, as they came. */
    readonly reached: number;
  }[];
}

const NAMES: Readonly<Record<PodKind, string>> = {
  noop: "no-op webhook",
  new: "berth, a new pod",
  again: "berth, a pod with a claim",
};

/** The figure of what was measured. */
export function reportAdmission(loads: readonly AdmissionLoad[]): Figure {
  const rows = loads.map((load) => {
    const waits = together(load.rounds.map((round) => round.waits));
    const { p50, p99 } = summarise(load.rounds.flatMap(({ times }) => times));
    return [
      NAMES[load.kind],
      String(load.perSecond),
      formatNumber(median(load.rounds.map(({ reached }) => reached))),
      String(refusedOf(load)),
      formatNumber(meanMs(load)),
      formatNumber(overNoop(load, loads)),
      load.kind === "noop" ? "-" : formatNumber(checkMs(load)),
      ...[0.005, 0.025, 0.1].map((limit) => partWithin(waits, limit)),
      limitText(limitOf(waits, 0.99)),
      formatNumber(p50),
      formatNumber(p99),
    ];
  });
  const headings = [
    ...[
      "",
      "pods/s due",
      "reached",
      "mean ms",
      "over no-op",
      "validating",
      "≤ 5 ms",
      "≤ 25 ms",
      "≤ 100 ms",
      "p99 at most",
    ],
    ...["creation p50 ms", "p99 ms"],
  ];
  return {
    name: "api-admission",
    title: "What the API server waits for the webhook",
    tables: [
      {
        title:
          "apiserver_admission_webhook_admission_duration_seconds of pods, mutating; means of rounds, all pods otherwise",
        headings,
        rows,
      },
    ],
    plots: [plotOf(loads)],
    goals: [],
    data: loads.map((load) => ({
      ...{ kind: load.kind, perSecond: load.perSecond, meanMs: meanMs(load) },
      overNoopMs: overNoop(load, loads),
      ...(load.kind === "noop" ? {} : { checkMs: checkMs(load) }),
      refused: refusedOf(load),
      reached: load.rounds.map(({ reached }) => reached),
      waits: load.rounds.map(({ waits }) => waits),
      times: summarise(load.rounds.flatMap(({ times }) => times)),
    })),
  };
}

/** The median of the rounds' means. */
function meanMs({ rounds }: AdmissionLoad): number {
  return median(rounds.map(({ waits }) => 1000 * meanOf(waits)));
}

function refusedOf({ rounds }: AdmissionLoad): number {
  return rounds.reduce((sum, { refused }) => sum + refused, 0);
}

/** For each pod; few or none of them are looked at once more. */
function checkMs({ rounds }: AdmissionLoad): number {
  return median(rounds.map(({ waits, checks }) => (1000 * checks.sum) / waits.count));
}

/** By how much a round's mean is above that of the no-op in the same round; the median of the rounds. */
export function overNoop(load: AdmissionLoad, loads: readonly AdmissionLoad[]): number {
  const noop = loads.find(({ kind, perSecond }) => kind === "noop" && perSecond === load.perSecond);
  const over = load.rounds.map(({ waits }, i) => {
    const beside = noop?.rounds[i]?.waits;
    return beside === undefined ? Number.NaN : 1000 * (meanOf(waits) - meanOf(beside));
  });
  return median(over);
}

function partWithin({ buckets, count }: Histogram, limit: number): string {
  return formatPart((buckets.find((bucket) => bucket.limit >= limit)?.count ?? 0) / count);
}

function limitText(seconds: number): string {
  return Number.isFinite(seconds) ? `${formatFixed(seconds * 1000, 0)} ms` : "more";
}

function plotOf(loads: readonly AdmissionLoad[]): Plot {
  const rates = [...new Set(loads.map(({ perSecond }) => perSecond))];
  const kinds = ["noop", "new", "again"] as const;
  const svg = barChart({
    title: "What the API server waits for the webhook, mean",
    groups: rates.map((rate) => `${rate} pods a second`),
    groupTitle: "pods created in a second, as they were due",
    valueTitle: "milliseconds",
    scale: "linear",
    series: kinds.map((kind) => ({
      name: NAMES[kind],
      values: rates.map((rate) => {
        const load = loads.find((one) => one.kind === kind && one.perSecond === rate);
        return load && meanMs(load);
      }),
    })),
  });
  const about = "mean admission time in the API server's histogram, beside a webhook that does nothing";
  return { name: "api-admission", about, svg };
}
