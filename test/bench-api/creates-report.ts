// SPDX-License-Identifier: Apache-2.0
import { barChart } from "../bench/chart.ts";
import { atLeast, type Figure, type Goal, type Plot } from "../bench/figure.ts";
import { formatFixed, formatNumber } from "../bench/number-format.ts";
import { type Comparison, compare, median, summarise } from "../bench/statistics.ts";
import type { Table } from "../bench/table.ts";
import type { ContenderName } from "./contender.ts";
import { compareRates, find, type LoadKey, type MeasuredLoad, rateOf, ratesOf } from "./measured-load.ts";

/** What was varied. */
export interface CreatesSize {
  readonly counts: readonly number[];
  readonly few: number;
  readonly many: number;
  readonly replicas: number;
  /** Milliseconds of durable writes of 4 KiB. */
  readonly disk: readonly number[];
}

const NAMES: Readonly<Record<ContenderName, string>> = {
  bare: "bare creates",
  watched: "bare creates, watched",
  berth: "berth",
  "one object": "model: one object",
  lease: "model: lease around it",
  "quick lease": "model: lease, asked 10 times as often",
};
const REACH = { share: 0.85, full: 0.8, "one object": 5, lease: 10 };
const two = (value: number) => formatFixed(value, 2);

/** The figure of what was measured. */
export function reportCreates(loads: readonly MeasuredLoad[], size: CreatesSize): Figure {
  const { p50, p99 } = summarise(size.disk);
  const data = loads.map((load) => {
    const { contender, workers, processes, taken, rounds } = load;
    const times = rounds.flatMap((round) => round.times);
    return {
      ...{ contender, workers, processes, taken, rates: ratesOf(load), cpu: cpuOf(load) },
      ...(times.length === 0 ? {} : { times: summarise(times) }),
    };
  });
  return {
    name: "api-creates",
    title: "Addresses in a second from one pool",
    tables: [rateTable(loads), shareTable(loads, size), costTable(loads, size), diskTable(size)],
    plots: [ratePlot(loads, size), sharePlot(loads, size)],
    goals: goalsOf(loads, size),
    data: { disk: { p50, p99 }, loads: data, shares: sharesOf(loads, size) },
  };
}

function workersOf(count: number): string {
  return `${count} ${count === 1 ? "worker" : "workers"}`;
}

function rateTable(loads: readonly MeasuredLoad[]): Table {
  const rows = loads.map((load) => {
    const rates = ratesOf(load);
    const times = load.rounds.flatMap((round) => round.times);
    const again = load.rounds.reduce((sum, round) => sum + round.again, 0);
    const { p50, p99 } = times.length === 0 ? { p50: Number.NaN, p99: Number.NaN } : summarise(times);
    return [
      nameOf(load),
      String(load.workers),
      formatNumber(rateOf(load)),
      `${formatNumber(Math.min(...rates))}-${formatNumber(Math.max(...rates))}`,
      formatNumber(p50),
      formatNumber(p99),
      formatFixed(again / Math.max(times.length, 1), 1),
    ];
  });
  const headings = ["", "workers", "addresses/s", "rounds", "p50 ms", "p99 ms", "tries again"];
  return { title: "addresses taken in a second, medians of rounds in turn", headings, rows };
}

function nameOf({ contender, processes, taken }: LoadKey): string {
  const where = processes === 1 ? "" : `, ${processes} processes`;
  return `${NAMES[contender]}, ${formatFixed(taken, 0)} taken${where}`;
}

/** What is compared, and the answer. `reach` undefined: for information. */
interface Share {
  readonly what: string;
  readonly reach: number | undefined;
  readonly found: Comparison;
}

function sharesOf(loads: readonly MeasuredLoad[], size: CreatesSize): readonly Share[] {
  const { counts, few, many, replicas } = size;
  const most = counts.at(-1) ?? 1;
  const load = (contender: ContenderName, workers: number, over: Partial<LoadKey> = {}): LoadKey => {
    return { contender, workers, processes: 1, taken: few, ...over };
  };
  const share = (what: string, reach: number | undefined, [a, b]: readonly [LoadKey, LoadKey]): Share[] => {
    const [ours, theirs] = [find(loads, a), find(loads, b)];
    return ours && theirs ? [{ what, reach, found: compareRates(ours, theirs) }] : [];
  };
  const full = { taken: many };
  const apart = { processes: replicas };
  const taken = formatFixed(many, 0);
  return [
    ...counts.flatMap((n) =>
      share(`berth to bare creates, ${workersOf(n)}`, REACH.share, [load("berth", n), load("bare", n)]),
    ),
    ...share(`berth to bare creates, ${most} workers in ${replicas} processes`, REACH.share, [
      load("berth", most, apart),
      load("bare", most, apart),
    ]),
    ...share(`berth to bare creates that are watched too, ${most} workers`, undefined, [
      load("berth", most),
      load("watched", most),
    ]),
    ...(["berth", "watched"] as const).flatMap((contender) =>
      serverShare(`${NAMES[contender]} to bare creates, by API server and etcd alone, ${most} workers`, [
        find(loads, load(contender, most)),
        find(loads, load("bare", most)),
      ]),
    ),
    ...share(`berth to bare creates, ${most} workers, ${taken} taken`, REACH.share, [
      load("berth", most, full),
      load("bare", most, full),
    ]),
    ...share(`berth to bare creates that are watched too, ${most} workers, ${taken} taken`, undefined, [
      load("berth", most, full),
      load("watched", most, full),
    ]),
    ...share(`berth with ${taken} taken to berth with ${few}, ${most} workers`, REACH.full, [
      load("berth", most, full),
      load("berth", most),
    ]),
    ...(["one object", "lease", "quick lease"] as const).flatMap((model) =>
      counts.flatMap((n) => {
        const reach = n === most && model !== "quick lease" ? REACH[model] : undefined;
        return share(`berth to ${NAMES[model]}, ${workersOf(n)}`, reach, [load("berth", n), load(model, n)]);
      }),
    ),
  ];
}

/** The ratio of rates if these two had the processors to themselves: that of the time they use for each address. */
function serverShare(
  what: string,
  [ours, theirs]: readonly [MeasuredLoad | undefined, MeasuredLoad | undefined],
): readonly Share[] {
  if (ours === undefined || theirs === undefined) return [];
  const used = (load: MeasuredLoad) => load.rounds.map(({ cpu }) => [cpu.apiServer + cpu.etcd]);
  return [{ what, reach: undefined, found: compare(used(theirs), used(ours)) }];
}

function shareTable(loads: readonly MeasuredLoad[], size: CreatesSize): Table {
  const rows = sharesOf(loads, size).map(({ what, found }) => [
    what,
    formatNumber(found.ratio),
    `${formatNumber(found.least)}-${formatNumber(found.most)}`,
  ]);
  return { title: "ratios of these rates", headings: ["", "ratio", "rounds"], rows };
}

function cpuOf({ rounds }: MeasuredLoad) {
  const middle = (pick: (cpu: MeasuredLoad["rounds"][number]["cpu"]) => number) =>
    median(rounds.map(({ cpu }) => pick(cpu)));
  return {
    apiServer: middle((cpu) => cpu.apiServer),
    etcd: middle((cpu) => cpu.etcd),
    workers: middle((cpu) => cpu.workers),
  };
}

/** Where the time goes on a machine whose processors are all busy. */
function costTable(loads: readonly MeasuredLoad[], { counts }: CreatesSize): Table {
  const most = counts.at(-1);
  const rows = loads
    .filter(({ workers }) => workers === most)
    .map((load) => {
      const { apiServer, etcd, workers } = cpuOf(load);
      return [nameOf(load), ...[apiServer, etcd, workers, apiServer + etcd + workers].map(formatNumber)];
    });
  const headings = ["", "API server", "etcd", "workers", "together"];
  return { title: `processor time for each address, milliseconds, ${most} workers`, headings, rows };
}

function diskTable({ disk }: CreatesSize): Table {
  const { p50, p99 } = summarise(disk);
  const rows = [["4 KiB at the end of a file, and fdatasync", formatNumber(p50), formatNumber(p99)]];
  return { title: "what etcd waits for: the disk, milliseconds", headings: ["", "p50", "p99"], rows };
}

function goalsOf(loads: readonly MeasuredLoad[], size: CreatesSize): readonly Goal[] {
  return sharesOf(loads, size).flatMap(({ what, reach, found }) =>
    reach === undefined ? [] : [atLeast(what, reach, found.ratio, two)],
  );
}

function ratePlot(loads: readonly MeasuredLoad[], { counts, few }: CreatesSize): Plot {
  const series = (["bare", "berth", "one object", "lease"] as const).map((contender) => ({
    name: NAMES[contender],
    values: counts.map((workers) => {
      const load = find(loads, { contender, workers, processes: 1, taken: few });
      return load && rateOf(load);
    }),
  }));
  const svg = barChart({
    title: "Addresses in a second from one pool",
    groups: counts.map(workersOf),
    groupTitle: "workers at once",
    valueTitle: "addresses in a second",
    scale: "log",
    series,
  });
  const about = "addresses in a second of bare creates, berth and two models, by workers";
  return { name: "api-creates", about, svg };
}

function sharePlot(loads: readonly MeasuredLoad[], size: CreatesSize): Plot {
  const shares = sharesOf(loads, size).filter(({ reach }) => reach !== undefined && reach < 1);
  const groups = shares.map(({ what }) =>
    what.startsWith("berth to bare creates, ") ? what.slice("berth to bare creates, ".length) : what,
  );
  const svg = barChart({
    title: "Berth as a share of bare creates",
    groups: groups.map((text) =>
      text.replace(/^berth with (\S+) taken to berth with (\S+),.*/, "$1 taken to $2"),
    ),
    groupTitle: "workers, all at one pool",
    valueTitle: "ratio of rates",
    scale: "linear",
    limit: { value: REACH.share, name: "reach: 0.85" },
    series: [{ name: "ratio", values: shares.map(({ found }) => found.ratio) }],
  });
  return { name: "api-shares", about: "berth's rate as a share of that of bare creates", svg };
}
