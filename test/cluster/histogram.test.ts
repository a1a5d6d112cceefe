// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { countOf, histogramOf, quantileOf, since } from "./histogram.ts";

const TEXT = `# HELP d x
d_bucket{name="a",type="admit",le="0.1"} 6
d_bucket{name="a",type="admit",le="1"} 9
d_bucket{name="a",type="admit",le="+Inf"} 10
d_bucket{name="a",type="validate",le="0.1"} 2
d_bucket{name="a",type="validate",le="+Inf"} 2
d_bucket{name="b",type="admit",le="+Inf"} 7
d_count{name="a",type="admit"} 10
`;

it("adds up what has the labels", () => {
  assert.deepEqual(
    [...histogramOf(TEXT, "d", ['name="a"'])],
    [
      [0.1, 8],
      [1, 9],
      [Number.POSITIVE_INFINITY, 12],
    ],
  );
});

it("finds quantiles within buckets, and the highest bound beyond them", () => {
  const histogram = histogramOf(TEXT, "d", ['name="a"', 'type="admit"']);
  assert.equal(countOf(histogram), 10);
  assert.equal(Math.round(quantileOf(histogram, 0.3)), 50);
  assert.equal(Math.round(quantileOf(histogram, 0.75)), 550);
  assert.equal(quantileOf(histogram, 0.99), 1000);
  assert.equal(quantileOf(since(histogram, histogram), 0.5), 0);
});
