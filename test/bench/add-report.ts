// SPDX-License-Identifier: Apache-2.0
import { lineChart } from "./chart.ts";
import { atMost, type Figure, type Goal, type Plot } from "./figure.ts";
import { formatFixed, formatNumber, formatPart } from "./number-format.ts";
import type { Verb } from "./sandboxes.ts";
import { type Comparison, compare, median, spread, summarise } from "./statistics.ts";
import type { Table } from "./table.ts";

/** Milliseconds by tag, round by round. */
export type Rounds = readonly ReadonlyMap<string, readonly number[]>[];

/** What was measured on a node with so many addresses taken. */
export interface MeasuredLevel {
  readonly taken: number;
  /** In turn with host-local. */
  readonly together: Rounds;
  /** Berth alone, in turn with the other nodes. */
  readonly alone: Rounds;
}

function valuesOf(rounds: Rounds, tag: string): readonly (readonly number[])[] {
  return rounds.flatMap((round) => {
    const values = round.get(tag);
    return values === undefined ? [] : [values];
  });
}

/** The figure of what was measured; `compared`: there was a host-local. */
export function reportAdd(levels: readonly MeasuredLevel[], compared: boolean): Figure {
  const tables = [verbTable(levels, "ADD"), verbTable(levels, "DEL"), aloneTable(levels)];
  return {
    name: "add",
    title: "CNI ADD and DEL, from exec to exit",
    tables,
    plots: [plotOf(levels)],
    goals: goalsOf(levels, compared),
    data: levels.map(({ taken, together, alone }) => ({
      taken,
      together: summaries(together),
      alone: summaries(alone),
      ...(compared
        ? { ratios: { berth: ratio(together, "berth ADD"), claim: ratio(together, "claim ADD") } }
        : {}),
    })),
  };
}

function summaries(rounds: Rounds) {
  const tags = new Set(rounds.flatMap((round) => [...round.keys()]));
  return Object.fromEntries([...tags].map((tag) => [tag, summarise(valuesOf(rounds, tag).flat())]));
}

/** Ours to host-local's, of the same verb; undefined where there is no host-local. */
function ratio(rounds: Rounds, tag: string): Comparison | undefined {
  const theirs = valuesOf(rounds, tag.replace(/^\S+/, "host-local"));
  return theirs.length === 0 ? undefined : compare(valuesOf(rounds, tag), theirs);
}

function verbTable(levels: readonly MeasuredLevel[], verb: Verb): Table {
  const rows = levels.map(({ taken, together }) => [
    formatFixed(taken, 0),
    ...cells(together, `berth ${verb}`),
    ratioCell(ratio(together, `berth ${verb}`)),
    ...cells(together, `claim ${verb}`),
    ratioCell(ratio(together, `claim ${verb}`)),
    ...cells(together, `host-local ${verb}`),
  ]);
  const headings = [
    "taken",
    "berth p50",
    "p99",
    "ratio",
    "claim p50",
    "p99",
    "ratio",
    "host-local p50",
    "p99",
  ];
  return { title: `${verb}, milliseconds, in turn with host-local`, headings, rows };
}

function aloneTable(levels: readonly MeasuredLevel[]): Table {
  const tags = ["berth ADD", "berth DEL", "claim ADD", "claim DEL", "block ADD", "block DEL", "floor"];
  const rows = levels.map(({ taken, alone }) => [
    formatFixed(taken, 0),
    ...tags.flatMap((tag) => cells(alone, tag)),
  ]);
  const headings = ["taken", ...tags.flatMap((tag) => [`${tag} p50`, "p99"])];
  return {
    title: "berth alone, milliseconds, all nodes in turn (floor: the process without a call)",
    headings,
    rows,
  };
}

function cells(rounds: Rounds, tag: string): readonly string[] {
  const values = valuesOf(rounds, tag).flat();
  if (values.length === 0) return ["-", "-"];
  const { p50, p99 } = summarise(values);
  return [formatNumber(p50), formatNumber(p99)];
}

/** 0.40 (0.38-0.43): of all rounds, and of the rounds one by one. */
function ratioCell(comparison: Comparison | undefined): string {
  if (comparison === undefined) return "-";
  const [all, least, most] = [comparison.ratio, comparison.least, comparison.most].map((r) =>
    formatFixed(r, 3),
  );
  return `${all} (${least}-${most})`;
}

function goalsOf(levels: readonly MeasuredLevel[], compared: boolean): readonly Goal[] {
  const three = (value: number) => formatFixed(value, 3);
  const ratios = [
    { taken: 0, limit: 0.25 },
    { taken: 1_000, limit: 0.1 },
  ].map(({ taken, limit }): Goal => {
    const what = `ADD p50 to host-local's, ${formatFixed(taken, 0)} taken`;
    const level = levels.find((one) => one.taken === taken);
    const found = level && compared ? ratio(level.together, "berth ADD") : undefined;
    if (found === undefined) return { what, reach: `at most ${three(limit)}`, measured: "-", met: undefined };
    return atMost(what, limit, found.ratio, three);
  });
  const flat = ["berth ADD", "claim ADD"].map((tag) => {
    const medians = levels.map(({ alone }) => median(valuesOf(alone, tag).flat()));
    const most = formatFixed(levels.at(-1)?.taken ?? 0, 0);
    return atMost(
      `${tag} p50, slowest above fastest of 0 to ${most} taken`,
      0.2,
      spread(medians),
      formatPart,
    );
  });
  const [first] = levels;
  const blocks = valuesOf(first?.alone ?? [], "block ADD");
  const dynamic =
    blocks.length === 0
      ? []
      : [
          atMost(
            "ADD p50 out of a block to a claim's",
            1.2,
            compare(blocks, valuesOf(first?.alone ?? [], "claim ADD")).ratio,
            three,
          ),
        ];
  return [...ratios, ...flat, ...dynamic];
}

function plotOf(levels: readonly MeasuredLevel[]): Plot {
  const series = [
    { name: "host-local p50", tag: "host-local ADD", q: "p50" },
    { name: "berth, range p50", tag: "berth ADD", q: "p50" },
    { name: "berth, claim p50", tag: "claim ADD", q: "p50" },
    { name: "host-local p99", tag: "host-local ADD", q: "p99" },
    { name: "berth, range p99", tag: "berth ADD", q: "p99" },
  ] as const;
  const svg = lineChart({
    title: "CNI ADD, from exec to exit",
    groups: levels.map(({ taken }) => formatFixed(taken, 0)),
    groupTitle: "addresses taken on the node",
    valueTitle: "milliseconds",
    scale: "log",
    series: series.map(({ name, tag, q }) => ({
      name,
      dashed: q === "p99",
      values: levels.map(({ together }) => {
        const values = valuesOf(together, tag).flat();
        return values.length === 0 ? undefined : summarise(values)[q];
      }),
    })),
  });
  return { name: "add", about: "time of an ADD by addresses taken, berth flat and host-local rising", svg };
}
