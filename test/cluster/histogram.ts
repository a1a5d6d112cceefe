// SPDX-License-Identifier: Apache-2.0

/** A cumulative histogram of Prometheus: upper bound in seconds -> observations up to it. */
export type Histogram = ReadonlyMap<number, number>;

/** The buckets of the metric whose labels have all of those, added up. */
export function histogramOf(text: string, metric: string, labels: readonly string[]): Histogram {
  const buckets = new Map<number, number>(); // upper bound -> observations
  for (const line of text.split("\n")) {
    if (!line.startsWith(`${metric}_bucket{`) || !labels.every((label) => line.includes(label))) continue;
    const [, bound = ""] = /le="([^"]+)"/.exec(line) ?? [];
    const le = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
    buckets.set(le, (buckets.get(le) ?? 0) + Number(line.slice(line.lastIndexOf(" "))));
  }
  return buckets;
}

/** What was observed between two looks. */
export function since(before: Histogram, now: Histogram): Histogram {
  return new Map([...now].map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)]));
}

export function countOf(histogram: Histogram): number {
  return histogram.get(Number.POSITIVE_INFINITY) ?? 0;
}

/** In milliseconds, linear within a bucket, as Prometheus's `histogram_quantile`; 0 of nothing. */
export function quantileOf(histogram: Histogram, q: number): number {
  const bounds = [...histogram].sort(([a], [b]) => a - b);
  const rank = q * countOf(histogram);
  let [below, lower] = [0, 0];
  for (const [bound, count] of bounds) {
    if (count >= rank && count > below) {
      if (bound === Number.POSITIVE_INFINITY) return lower * 1000;
      return (lower + ((bound - lower) * (rank - below)) / (count - below)) * 1000;
    }
    [below, lower] = [count, bound === Number.POSITIVE_INFINITY ? lower : bound];
  }
  return 0;
}
