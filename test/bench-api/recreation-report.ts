// SPDX-License-Identifier: Apache-2.0
import { barChart } from "../bench/chart.ts";
import { atMost, type Figure, type Plot } from "../bench/figure.ts";
import { formatFixed, formatNumber } from "../bench/number-format.ts";
import { type Comparison, compare, median, summarise } from "../bench/statistics.ts";

/** Pods that came, once. */
export interface Coming {
  readonly pods: number;
  /** What the API server waited for the webhook, all pods together, by its own clock. */
  readonly admissionMs: number;
  /** Of each pod: from the answer to its creation until its claim is seen bound to it. */
  readonly bindings: readonly number[];
  /** Of each pod's creation, from the moment at which it was due; milliseconds. */
  readonly times: readonly number[];
  /** Pods in a second. */
  readonly reached: number;
  /** Of which another address than the pinned one was seen, on the pod or in its claim. */
  readonly changed: number;
}

export interface Rounds {
  readonly first: Coming;
  readonly again: Coming;
}

/** What a pod spends in Berth before its node may start it, the mean of all: admission and binding. */
export function ipamMs({ pods, admissionMs, bindings }: Coming): number {
  return (admissionMs + bindings.reduce((sum, ms) => sum + ms, 0)) / pods;
}

/** The IPAM time of those that came again to that of those that were new. */
export function compareIpam(rounds: readonly Rounds[]): Comparison {
  return compare(
    rounds.map(({ again }) => [ipamMs(again)]),
    rounds.map(({ first }) => [ipamMs(first)]),
  );
}

/** The figure of what was measured. */
export function reportRecreation(rounds: readonly Rounds[]): Figure {
  const sides = [
    { name: "created", comings: rounds.map(({ first }) => first) },
    { name: "created again", comings: rounds.map(({ again }) => again) },
  ];
  const pods = rounds.reduce((sum, { again }) => sum + again.pods, 0);
  const changed = rounds.reduce((sum, { first, again }) => sum + first.changed + again.changed, 0);
  const { ratio, least, most } = compareIpam(rounds);
  const rows = sides.map(({ name, comings }) => {
    const { p50, p99 } = summarise(comings.flatMap(({ times }) => times));
    const bindings = summarise(comings.flatMap((coming) => coming.bindings));
    return [
      name,
      formatNumber(median(comings.map(({ reached }) => reached))),
      ...[median(comings.map(ipamMs)), admissionOf(comings), bindingOf(comings)].map(formatNumber),
      ...[bindings.p50, bindings.p99, p50, p99].map(formatNumber),
    ];
  });
  const headings = [
    ...["", "pods/s", "IPAM ms", "admission", "binding", "binding p50", "p99", "creation p50 ms", "p99"],
  ];
  const title = `${formatFixed(pods, 0)} pinned pods; milliseconds for each pod, medians of the means of rounds in turn`;
  return {
    name: "api-recreation",
    title: `Re-creation of ${formatFixed(pods, 0)} pinned pods`,
    tables: [
      { title, headings, rows },
      {
        title: "again to first",
        headings: ["", "ratio", "rounds"],
        rows: [["IPAM time", formatFixed(ratio, 2), `${formatFixed(least, 2)}-${formatFixed(most, 2)}`]],
      },
    ],
    plots: [plotOf(sides)],
    goals: [
      atMost("IPAM time of re-creation to that of creation", 1, ratio, (value) => formatFixed(value, 2)),
      atMost("addresses changed", 0, changed, (value) => formatFixed(value, 0)),
    ],
    data: { ratio: { ratio, least, most }, pods, changed, rounds: rounds.map(dataOf) },
  };
}

function admissionOf(comings: readonly Coming[]): number {
  return median(comings.map(({ admissionMs, pods }) => admissionMs / pods));
}

function bindingOf(comings: readonly Coming[]): number {
  return median(comings.map((coming) => ipamMs(coming) - coming.admissionMs / coming.pods));
}

function dataOf(round: Rounds) {
  const one = (coming: Coming) => ({
    ...{ ipamMs: ipamMs(coming), admissionMs: coming.admissionMs / coming.pods, reached: coming.reached },
    bindings: summarise(coming.bindings),
    times: summarise(coming.times),
    changed: coming.changed,
  });
  return { first: one(round.first), again: one(round.again) };
}

function plotOf(sides: readonly { readonly name: string; readonly comings: readonly Coming[] }[]): Plot {
  const svg = barChart({
    title: "Time in admission and binding for each pinned pod",
    groups: ["admission", "binding", "together"],
    groupTitle: "part of the time",
    valueTitle: "milliseconds, mean",
    scale: "linear",
    series: sides.map(({ name, comings }) => ({
      name,
      values: [admissionOf(comings), bindingOf(comings), median(comings.map(ipamMs))],
    })),
  });
  return { name: "api-recreation", about: "admission and binding of pods created and created again", svg };
}
