// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { join } from "node:path";
import { barChart } from "./chart.ts";
import { drive, type Run, type Timed } from "./driver.ts";
import { atLeast, type Figure, type Goal } from "./figure.ts";
import { formatFixed, formatNumber } from "./number-format.ts";
import { startStack } from "./running-stack.ts";
import { addressIn, dynamicSandbox, Network, type Verb } from "./sandboxes.ts";
import { StackData } from "./stack-data.ts";
import type { StackSetup } from "./stack-setup.ts";
import { median, summarise } from "./statistics.ts";

const AT_ONCE = 16;
const FULL = { levels: [0, 250], rounds: 6, adds: 256 };
const QUICK = { levels: [0], rounds: 2, adds: 96 };

type Side = "berth" | "host-local";
type CallOf = (verb: Verb, name: string) => Run;

/** One plugin on a node with so many addresses taken. */
interface Contender {
  readonly taken: number;
  readonly side: Side;
  readonly callOf: CallOf;
  /** Of each round: ADDs in a second, and the milliseconds of each. */
  readonly rates: number[];
  readonly times: number[];
}

/** How many pods a node can start in a second: sixteen ADDs under way at any time, both sides in turn. */
export async function measureParallel(setup: StackSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const contenders: Contender[] = [];
  for (const taken of size.levels) contenders.push(...(await prepare(setup, taken)));
  for (let round = -1; round < size.rounds; round++) {
    for (const contender of contenders) {
      const added = await addAndDelete(setup, contender, size.adds, round);
      if (round < 0) continue; // warms up
      contender.rates.push(rateOf(added));
      contender.times.push(...added.map(({ ms }) => ms));
    }
  }
  return report(contenders, size.levels);
}

async function prepare(setup: StackSetup, taken: number): Promise<readonly Contender[]> {
  const folder = setup.room();
  const network = new Network(folder);
  const dataDir = join(folder, "data");
  await StackData.write(dataDir, (auditInput) =>
    auditInput.fillRange({ cidr: network.cidr, count: taken, scope: network.scope, netns: network.netns }),
  );
  const { socket } = await startStack(setup, dataDir);
  const contender = (side: Side, callOf: CallOf) => ({ taken, side, callOf, rates: [], times: [] });
  const berth = contender("berth", (verb, name) => network.berth(verb, verb, dynamicSandbox(name), socket));
  const { hostLocal } = setup;
  if (hostLocal === undefined) return [berth];
  network.fillHostLocal(taken);
  const call: CallOf = (verb, name) => network.hostLocal(verb, verb, dynamicSandbox(name), hostLocal);
  return [berth, contender("host-local", call)];
}

/** The ADDs of one round, whose sandboxes are gone again afterwards. No two of them may have one address. */
async function addAndDelete(
  setup: StackSetup,
  { callOf }: Contender,
  count: number,
  round: number,
): Promise<readonly Timed[]> {
  const names = Array.from({ length: count }, (_, i) => `parallel-${round}-${i}`);
  const parallel = { parallel: AT_ONCE };
  const added = await drive(setup.driver, [parallel, ...names.map((name) => callOf("ADD", name))]);
  await drive(setup.driver, [parallel, ...names.map((name) => callOf("DEL", name))]);
  const addresses = new Set(added.map(({ printed }) => addressIn(printed)));
  assert.equal(addresses.size, count, "two sandboxes were given one address");
  return added;
}

/** Calls in a second, from the start of the first to the end of the last. */
function rateOf(calls: readonly Timed[]): number {
  const first = Math.min(...calls.map(({ startMs }) => startMs));
  const last = Math.max(...calls.map(({ endMs }) => endMs));
  return (calls.length * 1000) / (last - first);
}

function report(contenders: readonly Contender[], levels: readonly number[]): Figure {
  const of = (side: Side, taken: number) =>
    contenders.find((one) => one.side === side && one.taken === taken) ?? undefined;
  const ratioAt = (taken: number): number | undefined => {
    const [berth, hostLocal] = [of("berth", taken), of("host-local", taken)];
    return berth && hostLocal && median(berth.rates) / median(hostLocal.rates);
  };
  const rows = contenders.map(({ taken, side, rates, times }) => {
    const { p50, p99 } = summarise(times);
    const ratio = side === "berth" ? ratioAt(taken) : undefined;
    return [
      `${side}, ${taken} taken`,
      formatNumber(median(rates)),
      `${formatNumber(Math.min(...rates))}-${formatNumber(Math.max(...rates))}`,
      formatNumber(p50),
      formatNumber(p99),
      ratio === undefined ? "" : formatFixed(ratio, 2),
    ];
  });
  const headings = ["", "ADDs/s", "rounds", "p50 ms", "p99 ms", "ratio of rates"];
  return {
    name: "parallel",
    title: `ADDs in a second, ${AT_ONCE} at once`,
    tables: [{ title: `${AT_ONCE} processes at any time, medians of rounds in turn`, headings, rows }],
    plots: [plotOf(levels, of)],
    goals: levels.map((taken): Goal => {
      const what = `ADDs/s at ${AT_ONCE} in parallel to host-local's, ${taken} taken`;
      const ratio = ratioAt(taken);
      const two = (value: number) => formatFixed(value, 2);
      if (ratio === undefined) return { what, reach: "at least 4.00", measured: "-", met: undefined };
      return atLeast(what, 4, ratio, two);
    }),
    data: contenders.map(({ taken, side, rates, times }) => ({
      taken,
      side,
      rates,
      times: summarise(times),
    })),
  };
}

function plotOf(levels: readonly number[], of: (side: Side, taken: number) => Contender | undefined) {
  const sides = ["berth", "host-local"] as const;
  const svg = barChart({
    title: `ADDs in a second, ${AT_ONCE} at once`,
    groups: levels.map((taken) => `${taken} taken`),
    groupTitle: "addresses taken on the node",
    valueTitle: "ADDs in a second",
    scale: "linear",
    series: sides
      .filter((side) => levels.some((taken) => of(side, taken) !== undefined))
      .map((side) => ({
        name: side,
        values: levels.map((taken) => {
          const found = of(side, taken);
          return found && median(found.rates);
        }),
      })),
  });
  return { name: "parallel", about: "ADDs in a second of both plugins", svg };
}
