// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { type AdmissionLoad, overNoop, reportAdmission } from "./admission-report.ts";
import { reportAgents } from "./agents-report.ts";
import type { ContenderName } from "./contender.ts";
import { reportCreates } from "./creates-report.ts";
import type { Histogram } from "./histogram.ts";
import type { LoadRound, MeasuredLoad } from "./measured-load.ts";
import { type Coming, compareIpam, ipamMs, reportRecreation } from "./recreation-report.ts";

const size = { counts: [1, 64], few: 100, many: 50_000, replicas: 4, disk: [1, 2, 3] };

function round(count: number): LoadRound {
  const times = Array.from({ length: count }, (_, i) => i + 1);
  return { times, again: count, ms: 2_000, cpu: { apiServer: 2, etcd: 1, workers: 0.5 } };
}

function load(
  contender: ContenderName,
  counts: readonly number[],
  over: Partial<MeasuredLoad> = {},
): MeasuredLoad {
  return { contender, workers: 64, processes: 1, taken: 100, rounds: counts.map(round), ...over };
}

describe("reportCreates", () => {
  const loads = [
    load("bare", [100, 200, 300], { workers: 1 }),
    load("berth", [90, 180, 270], { workers: 1 }),
    load("bare", [1_000, 1_000, 1_000]),
    load("berth", [700, 790, 810]),
    load("one object", [0, 100, 0]),
    load("lease", [100, 79, 70]),
    load("bare", [1_000, 1_000, 1_000], { taken: 50_000 }),
    load("berth", [632, 632, 640], { taken: 50_000 }),
  ];
  const figure = reportCreates(loads, size);

  it("compares the medians of the rounds, and judges by them", () => {
    assert.deepEqual(
      figure.goals.map(({ what, measured, met }) => [what, measured, met]),
      [
        ["berth to bare creates, 1 worker", "0.90", true],
        ["berth to bare creates, 64 workers", "0.79", false],
        ["berth to bare creates, 64 workers, 50,000 taken", "0.63", false],
        ["berth with 50,000 taken to berth with 100, 64 workers", "0.80", true],
        ["berth to model: one object, 64 workers", "790.00", true],
        ["berth to model: lease around it, 64 workers", "10.00", true],
      ],
    );
  });

  it("says what single rounds would have given", () => {
    const [, shares] = figure.tables;
    assert.deepEqual(shares?.rows[1], ["berth to bare creates, 64 workers", "0.790", "0.700-0.810"]);
  });

  it("says what would be left of it if API server and etcd had the processors to themselves", () => {
    const costly = { apiServer: 5, etcd: 1, workers: 0.5 };
    const dear = load("berth", [700]);
    const rounds = dear.rounds.map((one) => ({ ...one, cpu: costly }));
    const [, shares] = reportCreates([load("bare", [1_000]), { ...dear, rounds }], size).tables;
    assert.deepEqual(shares?.rows.at(-1), [
      "berth to bare creates, by API server and etcd alone, 64 workers",
      "0.500",
      "0.500-0.500",
    ]);
  });

  it("has a row for each load, and its rate in a second", () => {
    const [rates] = figure.tables;
    assert.deepEqual(
      rates?.rows.map((row) => row[2]),
      ["100", "90.0", "500", "395", "0.500", "39.5", "500", "316"],
    );
  });

  it("draws what it says", () => {
    assert.deepEqual(
      figure.plots.map(({ name, svg }) => [name, svg.startsWith("<svg ")]),
      [
        ["api-creates", true],
        ["api-shares", true],
      ],
    );
  });
});

function waits(count: number, sum: number): Histogram {
  return { buckets: [{ limit: 0.005, count }], sum, count };
}

describe("reportAdmission", () => {
  const loads: AdmissionLoad[] = [
    admission("noop", [0.1, 0.2, 0.3]),
    admission("new", [1.1, 1.3, 1.2]),
    admission("again", [0.1, 0.1, 0.1]),
  ];

  function admission(kind: AdmissionLoad["kind"], sums: readonly number[]): AdmissionLoad {
    const rounds = sums.map((sum) => ({
      waits: waits(100, sum),
      checks: waits(100, 0.05),
      times: [1],
      refused: kind === "new" ? 1 : 0,
      reached: 90,
    }));
    return { kind, perSecond: 100, rounds };
  }

  it("compares each round with the no-op webhook of the same round", () => {
    const over = loads.map((one) => overNoop(one, loads).toFixed(3));
    assert.deepEqual(over, ["0.000", "10.000", "-1.000"]);
  });

  it("has a row for each load: what was due, what was reached, the mean", () => {
    const [table] = reportAdmission(loads).tables;
    assert.deepEqual(
      table?.rows.map((row) => row.slice(0, 7)),
      [
        ["no-op webhook", "100", "90.0", "0", "2.00", "0.000", "-"],
        ["berth, a new pod", "100", "90.0", "3", "12.0", "10.0", "0.500"],
        ["berth, a pod with a claim", "100", "90.0", "0", "1.00", "-1.00", "0.500"],
      ],
    );
  });
});

describe("reportRecreation", () => {
  const coming = (admissionMs: number, binding: number, changed = 0): Coming => {
    return { pods: 2, admissionMs, bindings: [binding, binding], times: [1, 2], reached: 50, changed };
  };
  const rounds = [
    { first: coming(20, 10), again: coming(10, 10) },
    { first: coming(20, 10), again: coming(4, 10) },
    { first: coming(20, 10), again: coming(40, 10) },
  ];

  it("adds admission and binding of each pod", () => {
    assert.equal(ipamMs(coming(20, 10)), 20);
  });

  it("compares those that came again with those that were new, by rounds", () => {
    assert.deepEqual(compareIpam(rounds), { ratio: 0.75, least: 0.6, most: 1.5 });
  });

  it("counts an address that changed, whenever it was seen", () => {
    const [ratio, changed] = reportRecreation([
      ...rounds,
      { first: coming(20, 10, 1), again: coming(10, 10, 2) },
    ]).goals;
    assert.deepEqual([ratio?.met, changed?.measured, changed?.met], [true, "3", false]);
  });
});

describe("reportAgents", () => {
  const of = (name: string, mib: number) => ({ name, resident: mib * 2 ** 20, anonymous: 2 ** 20 });
  const measured = {
    ...{ fixedMs: [10, 20, 30], dynamicMs: [11, 23, 90], crowdMs: 500, atOnce: 110 },
    ...{ free: 172, alone: 172, memory: [of("one node", 100), of("large", 105)] },
  };

  it("compares medians, what was served with what was free, and the sizes of agents", () => {
    const { goals } = reportAgents(measured);
    assert.deepEqual(
      goals.map((goal) => [goal.measured, goal.met]),
      [
        ["1.15", true],
        ["172", true],
        ["1.05", true],
      ],
    );
    const worse = { dynamicMs: [11, 25, 30], alone: 171, memory: [of("one node", 100), of("large", 120)] };
    const missed = reportAgents({ ...measured, ...worse }).goals;
    assert.ok(missed.every(({ met }) => met === false));
  });
});

describe("docs/performance.md", () => {
  it("has a place for each figure of the bench", async () => {
    const document = await readFile(new URL("../../docs/performance.md", import.meta.url), "utf8");
    const main = await readFile(new URL("./main.ts", import.meta.url), "utf8");
    const named = [...main.matchAll(/^ {2}(\w+): measure/gm)].map((match) => `api-${match[1]}`);
    const places = [...document.matchAll(/<!-- bench (api-\w+) -->\n[\s\S]*?<!-- end -->/g)].map(
      (match) => match[1],
    );
    assert.deepEqual(places, named);
  });
});
