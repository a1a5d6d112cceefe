// SPDX-License-Identifier: Apache-2.0
import { barChart } from "../bench/chart.ts";
import { atLeast, type Figure, type Goal, type Plot } from "../bench/figure.ts";
import { formatFixed, formatNumber } from "../bench/number-format.ts";
import { type Comparison, compare, median, summarise } from "../bench/statistics.ts";
import type { Table } from "../bench/table.ts";
import type { ContenderName } from "./contender.ts";
import { compareRates, find, type LaneKey, type MeasuredLane, rateOf, ratesOf } from "./lane.ts";

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
export function reportCreates(lanes: readonly MeasuredLane[], size: CreatesSize): Figure {
  const { p50, p99 } = summarise(size.disk);
  const data = lanes.map((lane) => {
    const { contender, workers, processes, taken, rounds } = lane;
    const times = rounds.flatMap((round) => round.times);
    return {
      ...{ contender, workers, processes, taken, rates: ratesOf(lane), cpu: cpuOf(lane) },
      ...(times.length === 0 ? {} : { times: summarise(times) }),
    };
  });
  return {
    name: "api-creates",
    title: "Addresses in a second from one pool",
    tables: [rateTable(lanes), shareTable(lanes, size), costTable(lanes, size), diskTable(size)],
    plots: [ratePlot(lanes, size), sharePlot(lanes, size)],
    goals: goalsOf(lanes, size),
    data: { disk: { p50, p99 }, lanes: data, shares: sharesOf(lanes, size) },
  };
}

function workersOf(count: number): string {
  return `${count} ${count === 1 ? "worker" : "workers"}`;
}

function rateTable(lanes: readonly MeasuredLane[]): Table {
  const rows = lanes.map((lane) => {
    const rates = ratesOf(lane);
    const times = lane.rounds.flatMap((round) => round.times);
    const again = lane.rounds.reduce((sum, round) => sum + round.again, 0);
    const { p50, p99 } = times.length === 0 ? { p50: Number.NaN, p99: Number.NaN } : summarise(times);
    return [
      nameOf(lane),
      String(lane.workers),
      formatNumber(rateOf(lane)),
      `${formatNumber(Math.min(...rates))}-${formatNumber(Math.max(...rates))}`,
      formatNumber(p50),
      formatNumber(p99),
      formatFixed(again / Math.max(times.length, 1), 1),
    ];
  });
  const headings = ["", "workers", "addresses/s", "rounds", "p50 ms", "p99 ms", "tries again"];
  return { title: "addresses taken in a second, medians of rounds in turn", headings, rows };
}

function nameOf({ contender, processes, taken }: LaneKey): string {
  const where = processes === 1 ? "" : `, ${processes} processes`;
  return `${NAMES[contender]}, ${formatFixed(taken, 0)} taken${where}`;
}

/** What is compared, and the answer. `reach` undefined: for information. */
interface Share {
  readonly what: string;
  readonly reach: number | undefined;
  readonly found: Comparison;
}

function sharesOf(lanes: readonly MeasuredLane[], size: CreatesSize): readonly Share[] {
  const { counts, few, many, replicas } = size;
  const most = counts.at(-1) ?? 1;
  const lane = (contender: ContenderName, workers: number, over: Partial<LaneKey> = {}): LaneKey => {
    return { contender, workers, processes: 1, taken: few, ...over };
  };
  const share = (what: string, reach: number | undefined, [a, b]: readonly [LaneKey, LaneKey]): Share[] => {
    const [ours, theirs] = [find(lanes, a), find(lanes, b)];
    return ours && theirs ? [{ what, reach, found: compareRates(ours, theirs) }] : [];
  };
  const full = { taken: many };
  const apart = { processes: replicas };
  const taken = formatFixed(many, 0);
  return [
    ...counts.flatMap((n) =>
      share(`berth to bare creates, ${workersOf(n)}`, REACH.share, [lane("berth", n), lane("bare", n)]),
    ),
    ...share(`berth to bare creates, ${most} workers in ${replicas} processes`, REACH.share, [
      lane("berth", most, apart),
      lane("bare", most, apart),
    ]),
    ...share(`berth to bare creates that are watched too, ${most} workers`, undefined, [
      lane("berth", most),
      lane("watched", most),
    ]),
    ...(["berth", "watched"] as const).flatMap((contender) =>
      serverShare(`${NAMES[contender]} to bare creates, by API server and etcd alone, ${most} workers`, [
        find(lanes, lane(contender, most)),
        find(lanes, lane("bare", most)),
      ]),
    ),
    ...share(`berth to bare creates, ${most} workers, ${taken} taken`, REACH.share, [
      lane("berth", most, full),
      lane("bare", most, full),
    ]),
    ...share(`berth to bare creates that are watched too, ${most} workers, ${taken} taken`, undefined, [
      lane("berth", most, full),
      lane("watched", most, full),
    ]),
    ...share(`berth with ${taken} taken to berth with ${few}, ${most} workers`, REACH.full, [
      lane("berth", most, full),
      lane("berth", most),
    ]),
    ...(["one object", "lease", "quick lease"] as const).flatMap((model) =>
      counts.flatMap((n) => {
        const reach = n === most && model !== "quick lease" ? REACH[model] : undefined;
        return share(`berth to ${NAMES[model]}, ${workersOf(n)}`, reach, [lane("berth", n), lane(model, n)]);
      }),
    ),
  ];
}

/** The ratio of rates if these two had the processors to themselves: that of the time they use for each address. */
function serverShare(
  what: string,
  [ours, theirs]: readonly [MeasuredLane | undefined, MeasuredLane | undefined],
): readonly Share[] {
  if (ours === undefined || theirs === undefined) return [];
  const used = (lane: MeasuredLane) => lane.rounds.map(({ cpu }) => [cpu.apiServer + cpu.etcd]);
  return [{ what, reach: undefined, found: compare(used(theirs), used(ours)) }];
}

function shareTable(lanes: readonly MeasuredLane[], size: CreatesSize): Table {
  const rows = sharesOf(lanes, size).map(({ what, found }) => [
    what,
    formatNumber(found.ratio),
    `${formatNumber(found.least)}-${formatNumber(found.most)}`,
  ]);
  return { title: "ratios of these rates", headings: ["", "ratio", "rounds"], rows };
}

function cpuOf({ rounds }: MeasuredLane) {
  const middle = (pick: (cpu: MeasuredLane["rounds"][number]["cpu"]) => number) =>
    median(rounds.map(({ cpu }) => pick(cpu)));
  return {
    apiServer: middle((cpu) => cpu.apiServer),
    etcd: middle((cpu) => cpu.etcd),
    workers: middle((cpu) => cpu.workers),
  };
}

/** Where the time goes on a machine whose processors are all busy. */
function costTable(lanes: readonly MeasuredLane[], { counts }: CreatesSize): Table {
  const most = counts.at(-1);
  const rows = lanes
    .filter(({ workers }) => workers === most)
    .map((lane) => {
      const { apiServer, etcd, workers } = cpuOf(lane);
      return [nameOf(lane), ...[apiServer, etcd, workers, apiServer + etcd + workers].map(formatNumber)];
    });
  const headings = ["", "API server", "etcd", "workers", "together"];
  return { title: `processor time for each address, milliseconds, ${most} workers`, headings, rows };
}

function diskTable({ disk }: CreatesSize): Table {
  const { p50, p99 } = summarise(disk);
  const rows = [["4 KiB at the end of a file, and fdatasync", formatNumber(p50), formatNumber(p99)]];
  return { title: "what etcd waits for: the disk, milliseconds", headings: ["", "p50", "p99"], rows };
}

function goalsOf(lanes: readonly MeasuredLane[], size: CreatesSize): readonly Goal[] {
  return sharesOf(lanes, size).flatMap(({ what, reach, found }) =>
    reach === undefined ? [] : [atLeast(what, reach, found.ratio, two)],
  );
}

function ratePlot(lanes: readonly MeasuredLane[], { counts, few }: CreatesSize): Plot {
  const series = (["bare", "berth", "one object", "lease"] as const).map((contender) => ({
    name: NAMES[contender],
    values: counts.map((workers) => {
      const lane = find(lanes, { contender, workers, processes: 1, taken: few });
      return lane && rateOf(lane);
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

function sharePlot(lanes: readonly MeasuredLane[], size: CreatesSize): Plot {
  const shares = sharesOf(lanes, size).filter(({ reach }) => reach !== undefined && reach < 1);
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
