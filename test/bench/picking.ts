// SPDX-License-Identifier: Apache-2.0
import { Worker } from "node:worker_threads";
import { barChart } from "./chart.ts";
import { atMost, type Figure } from "./figure.ts";
import { formatFixed, formatNumber } from "./number-format.ts";
import type { PickingTask, PickingTimes } from "./picking-worker.ts";
import type { StackSetup } from "./stack-setup.ts";
import { compare, median, summarise } from "./statistics.ts";

const FILLS = [0, 0.5, 0.999];
/** Short rounds: whatever else the machine does spoils few of them. */
const FULL = { rounds: 500, picks: 100, warmUp: 200 };
const QUICK = { rounds: 100, picks: 100, warmUp: 100 };

/** The spaces; nobody can fill a /64, so as many of its addresses as a /12 has, where picking begins, are. */
const SPACES = [
  { name: "IPv4 /12", cidr: "10.64.0.0/12" },
  { name: "IPv6 /64", cidr: "fd00:20::/64" },
];
const FILLED = { full: 2 ** 20, quick: 2 ** 17 };

interface Picked {
  readonly name: string;
  readonly times: PickingTimes;
}

/** What it costs to choose a free address, in process, in an empty and in a full pool. */
export async function measurePicking(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const filled = setup.quick ? FILLED.quick : FILLED.full;
  const picked: Picked[] = [];
  for (const { name, cidr } of SPACES) {
    setup.say(`${name}, ${formatFixed(filled, 0)} addresses filled`);
    const rounds = size.rounds + size.warmUp;
    const times = await inThread({ cidr, filled, fills: FILLS, rounds, picks: size.picks });
    picked.push({ name, times: times.map((rounds) => rounds.slice(size.warmUp)) });
  }
  return report(picked, size.picks);
}

function inThread(task: PickingTask): Promise<PickingTimes> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./picking-worker.ts", import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: 4096 },
    });
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("the thread ended without an answer")));
  });
}

function fillName(part: number): string {
  return `${formatFixed(part * 100, part === 0.999 ? 1 : 0)} % full`;
}

function report(picked: readonly Picked[], picks: number): Figure {
  const ratioOf = (times: PickingTimes, i: number) =>
    compare(
      (times[i] ?? []).map((ns) => [ns]),
      (times[0] ?? []).map((ns) => [ns]),
    );
  const rows = picked.flatMap(({ name, times }) =>
    FILLS.map((part, i) => {
      const { p50, p99 } = summarise(times[i] ?? []);
      return [
        `${name}, ${fillName(part)}`,
        formatNumber(p50),
        formatNumber(p99),
        formatFixed(ratioOf(times, i).ratio, 2),
      ];
    }),
  );
  return {
    name: "picking",
    title: "Picking a free address",
    tables: [
      {
        title: `nanoseconds of one pick, of rounds of ${formatFixed(picks, 0)}`,
        headings: ["pool", "p50", "p99", "to empty"],
        rows,
      },
    ],
    plots: [
      {
        name: "picking",
        about: "nanoseconds of one pick by how full the pool is",
        svg: barChart({
          title: "Picking a free address",
          groups: picked.map(({ name }) => name),
          groupTitle: "pool",
          valueTitle: "nanoseconds",
          scale: "linear",
          series: FILLS.map((part, i) => ({
            name: fillName(part),
            values: picked.map(({ times }) => median(times[i] ?? [])),
          })),
        }),
      },
    ],
    goals: picked.map(({ name, times }) => {
      const worst = Math.max(...FILLS.map((_, i) => ratioOf(times, i).ratio));
      const two = (value: number) => formatFixed(value, 2);
      return atMost(`picking in ${name}, fullest or slowest to empty`, 2, worst, two);
    }),
    data: picked.map(({ name, times }) => ({
      name,
      fills: FILLS.map((part, i) => ({ part, ns: summarise(times[i] ?? []), toEmpty: ratioOf(times, i) })),
    })),
  };
}
