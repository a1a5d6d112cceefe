// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { parse } from "yaml";
import { faultsIn, knownMetrics, namesIn } from "./expressions.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "action", string>>;
}

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const { groups } = parse(read("charts/berth/files/alerts.yaml")) as {
  groups: { name: string; rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly datasource?: unknown;
  readonly targets?: readonly { readonly expr: string; readonly datasource?: unknown }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

const dashboard = JSON.parse(read("charts/berth/files/dashboard.json")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
};

let known: Awaited<ReturnType<typeof knownMetrics>>;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    known = await knownMetrics();
  });
}

describe("expressions", () => {
  setUp();

  for (const [expression, fault] of [
    ["berth_nonsense > 0", "there is no metric berth_nonsense"],
    ["rate(berth_leader[5m]) > 0", "rate() of berth_leader, which is no counter"],
    ["berth_reaper_passes_total > 3", "berth_reaper_passes_total counts up: it says something by its rate"],
    ["sum(rate(berth_reaper_passes_total)) > 3", "a rate has no range"],
    ["sum(berth_leader", "it is no PromQL from character 17 on"],
    ["berth_leader > > 1", "it is no PromQL from character 16 on"],
    ["max by (pod) (berth_leader)", "nothing in it has the label pod"],
    ['berth_ready{pod="x"} == 0', "berth_ready has no label pod"],
    [
      "histogram_quantile(0.9, sum by (le) (rate(berth_reaper_passes_total[5m])))",
      "histogram_quantile() of no _bucket",
    ],
    [
      "histogram_quantile(0.9, sum(rate(berth_admission_duration_seconds_bucket[5m])))",
      "histogram_quantile() without le",
    ],
    [
      "berth_admission_duration_seconds > 1",
      "berth_admission_duration_seconds is a histogram: it is asked for by _bucket, _count and _sum",
    ],
  ] as const) {
    it(`are refused: ${expression}`, () => {
      assert.ok(faultsIn(expression, known).includes(fault), faultsIn(expression, known).join("; "));
    });
  }
});

describe("charts/berth/files/alerts.yaml", () => {
  setUp();

  for (const rule of rules) {
    it(`${rule.alert} can be evaluated, and tells what it means and what to do`, () => {
      assert.deepEqual(faultsIn(rule.expr, known), []);
      assert.ok(namesIn(rule.expr).length > 0);
      assert.match(rule.alert, /^Berth[A-Z][A-Za-z]+$/);
      assert.match(rule.for, /^\d+[mh]$/);
      assert.ok(["warning", "critical"].includes(rule.labels.severity));
      for (const key of ["summary", "description", "action"] as const)
        assert.match(rule.annotations[key], /\.$/, `${key} ends with a point`);
    });

    it(`${rule.alert} speaks of no label that its expression does not have`, () => {
      const words = Object.values(rule.annotations).join(" ");
      for (const [, label = ""] of words.matchAll(/\$labels\.(\w+)/g)) {
        const direct = /^[a-z_]+ [=<>]/.test(rule.expr) && label === "instance";
        assert.ok(direct || new RegExp(`by \\([^)]*\\b${label}\\b`).test(rule.expr), label);
      }
    });
  }

  it("names every alert once", () => {
    const names = rules.map(({ alert }) => alert);
    assert.equal(new Set(names).size, names.length);
    assert.ok(names.length >= 20);
  });
});

describe("charts/berth/files/dashboard.json", () => {
  setUp();

  for (const { title, description, targets } of dashboard.panels.filter((panel) => panel.targets)) {
    it(`${title}: can be drawn and says what it answers`, () => {
      assert.match(description ?? "", /\?$/);
      for (const { expr } of targets ?? [])
        assert.deepEqual(faultsIn(expr.replaceAll("$__rate_interval", "5m"), known), [], expr);
    });
  }

  it("takes the data source from a variable, wherever it names one", () => {
    assert.deepEqual(
      dashboard.templating.list.map(({ name, type }) => [name, type]),
      [["datasource", "datasource"]],
    );
    for (const { title, datasource, targets = [] } of dashboard.panels)
      for (const source of [datasource, ...targets.map((target) => target.datasource)])
        if (source !== undefined) assert.deepEqual(source, { type: "prometheus", uid: "$datasource" }, title);
  });

  it("lays no panel over another", () => {
    const cells = new Set<string>();
    for (const { title, gridPos } of dashboard.panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(x < 24 && !cells.has(`${x} ${y}`), title);
          cells.add(`${x} ${y}`);
        }
  });
});
