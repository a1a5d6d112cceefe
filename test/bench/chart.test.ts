// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { linearAxis, logAxis } from "./axis.ts";
import { barChart, type Chart, lineChart } from "./chart.ts";

const chart: Chart = {
  title: "ADD <exec to exit>",
  groups: ["0", "1,000"],
  groupTitle: "addresses taken",
  valueTitle: "ms",
  series: [
    { name: "berth", values: [1, 1] },
    { name: "host-local", values: [2, 10], dashed: true },
  ],
  scale: "linear",
};

describe("linearAxis", () => {
  it("goes from 0 to a round number in round steps", () => {
    assert.deepEqual(linearAxis(9).ticks, [0, 2, 4, 6, 8, 10]);
    assert.deepEqual(linearAxis(40).ticks, [0, 10, 20, 30, 40]);
    assert.equal(linearAxis(9).at(5), 0.5);
  });

  it("contains the greatest value", () => {
    for (const most of [0.001, 0.7, 1, 3, 7.3, 99, 101, 65_536]) {
      const { at, ticks } = linearAxis(most);
      assert.ok(at(most) <= 1 + 1e-9 && (ticks.at(-1) ?? 0) >= most - 1e-9, String(most));
    }
  });
});

describe("logAxis", () => {
  it("goes from one power of ten to another", () => {
    assert.deepEqual(logAxis(0.8, 394).ticks, [0.1, 1, 10, 100, 1000]);
    assert.equal(logAxis(1, 100).at(10), 0.5);
  });

  it("has a length even for a single value", () => {
    assert.deepEqual(logAxis(10, 10).ticks, [10, 100]);
  });
});

describe("lineChart", () => {
  it("puts greater values higher and later groups further to the right", () => {
    const points = [...lineChart(chart).matchAll(/<polyline points="([^"]*)"/g)].map((match) =>
      (match[1] ?? "").split(" ").map((pair) => pair.split(",").map(Number)),
    );
    const [flat, rising] = points;
    assert.equal(flat?.[0]?.[1], flat?.[1]?.[1]);
    assert.ok((rising?.[1]?.[1] ?? 0) < (rising?.[0]?.[1] ?? 0));
    assert.ok((flat?.[0]?.[0] ?? 0) < (flat?.[1]?.[0] ?? 0));
  });

  it("draws dashes where they are asked for, names in a legend, and what was not measured not at all", () => {
    const svg = lineChart({ ...chart, series: [...chart.series, { name: "late", values: [undefined, 3] }] });
    assert.equal(svg.match(/stroke-dasharray/g)?.length, 1);
    assert.equal(svg.match(/<circle/g)?.length, 5);
    assert.match(svg, />late<\/text>/);
  });

  it("escapes text", () => {
    assert.match(lineChart(chart), /<title>ADD &lt;exec to exit&gt;<\/title>/);
    assert.doesNotMatch(lineChart(chart), /<exec/);
  });

  it("draws the same for the same", () => {
    assert.equal(lineChart(chart), lineChart(structuredClone(chart)));
  });
});

describe("barChart", () => {
  it("has a bar with its value for each measurement, as high as that is", () => {
    const svg = barChart({ ...chart, series: [{ name: "a", values: [5, 10] }] });
    const bars = [...svg.matchAll(/<rect x="[^"]*" y="[^"]*" width="[^"]*" height="([^"]*)"/g)];
    const [legend, half, whole] = bars.map((match) => Number(match[1]));
    assert.equal(legend, 12);
    assert.ok(Math.abs((whole ?? 0) / (half ?? 1) - 2) < 0.01);
    assert.match(svg, />5\.00<\/text>/);
    assert.match(svg, />10\.0<\/text>/);
  });

  it("draws on a logarithmic scale, and what is to be reached", () => {
    const svg = barChart({ ...chart, scale: "log", limit: { value: 0.5, name: "reach 0.5" } });
    assert.match(svg, />reach 0.5<\/text>/);
    assert.match(svg, />0\.1<\/text>/);
  });

  it("refuses to draw nothing", () => {
    assert.throws(() => barChart({ ...chart, series: [] }), new RangeError("there is nothing to draw"));
  });
});
