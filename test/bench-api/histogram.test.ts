// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { between, limitOf, meanOf, readHistogram, together } from "./histogram.ts";

const METRIC = "waiting_seconds";

function text(name: string, counts: readonly [number, number, number], sum: number): string {
  const [a, b, all] = counts;
  const labels = `name="${name}",type="admit"`;
  return [
    `# TYPE ${METRIC} histogram`,
    `${METRIC}_bucket{${labels},le="0.005"} ${a}`,
    `${METRIC}_bucket{${labels},le="0.025"} ${b}`,
    `${METRIC}_bucket{${labels},le="+Inf"} ${all}`,
    `${METRIC}_sum{${labels}} ${sum}`,
    `${METRIC}_count{${labels}} ${all}`,
    "",
  ].join("\n");
}

const all = () => true;

describe("readHistogram", () => {
  it("reads the series whose labels are asked for, and no other metric", () => {
    const other = text("other", [7, 7, 7], 7).replaceAll(METRIC, `${METRIC}_of_others`);
    const page = text("a", [1, 2, 4], 0.5) + text("b", [10, 20, 40], 5) + other;
    assert.deepEqual(
      readHistogram(page, METRIC, ({ name }) => name === "a"),
      {
        buckets: [
          { limit: 0.005, count: 1 },
          { limit: 0.025, count: 2 },
          { limit: Number.POSITIVE_INFINITY, count: 4 },
        ],
        sum: 0.5,
        count: 4,
      },
    );
  });

  it("adds the series that are taken together", () => {
    const found = readHistogram(text("a", [1, 2, 4], 0.5) + text("b", [10, 20, 40], 5), METRIC, all);
    assert.deepEqual(
      [found.buckets.map(({ count }) => count), found.sum, found.count],
      [[11, 22, 44], 5.5, 44],
    );
  });

  it("is of nothing where there is no such metric", () => {
    assert.deepEqual(readHistogram("up 1\n", METRIC, all), { buckets: [], sum: 0, count: 0 });
  });
});

describe("a histogram", () => {
  const early = readHistogram(text("a", [1, 2, 4], 0.5), METRIC, all);
  const late = readHistogram(text("a", [91, 102, 104], 2.5), METRIC, all);
  const added = between(early, late);

  it("is that of what was added between two readings", () => {
    assert.deepEqual(
      [added.buckets.map(({ count }) => count), added.sum, added.count],
      [[90, 100, 100], 2, 100],
    );
    assert.deepEqual(between({ buckets: [], sum: 0, count: 0 }, late), late);
  });

  it("knows its mean, and the limit that a part of all is within", () => {
    assert.equal(meanOf(added), 0.02);
    assert.deepEqual(
      [0.5, 0.9, 0.91, 1].map((part) => limitOf(added, part)),
      [0.005, 0.005, 0.025, 0.025],
    );
    assert.equal(limitOf(early, 1), Number.POSITIVE_INFINITY);
    assert.ok(Number.isNaN(limitOf({ buckets: [], sum: 0, count: 0 }, 0.5)));
  });

  it("is put together of several", () => {
    const both = together([early, added]);
    assert.deepEqual(
      [both.buckets.map(({ count }) => count), both.sum, both.count],
      [[91, 102, 104], 2.5, 104],
    );
  });
});
