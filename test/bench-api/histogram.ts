// SPDX-License-Identifier: Apache-2.0

/** A histogram of Prometheus: how many were not above each limit, cumulative, the last limit being infinite. */
export interface Histogram {
  readonly buckets: readonly { readonly limit: number; readonly count: number }[];
  readonly sum: number;
  readonly count: number;
}

type Labels = Readonly<Record<string, string>>;

/** Reads a histogram from the text that a server's /metrics answers, all series added whose labels the filter takes. */
export function readHistogram(text: string, name: string, takes: (labels: Labels) => boolean): Histogram {
  const series = text.split("\n").flatMap((line) => {
    const [, key = "", inside = "", value = ""] = /^(\w+)\{([^}]*)\} (\S+)/.exec(line) ?? [];
    const labels = key.startsWith(name) ? labelsIn(inside) : {};
    return key.startsWith(name) && takes(labels) ? [{ key, labels, value: Number(value) }] : [];
  });
  const add = (key: string) => series.reduce((sum, one) => sum + (one.key === key ? one.value : 0), 0);
  const buckets = series
    .filter(({ key }) => key === `${name}_bucket`)
    .map(({ labels, value }) => ({ limit: limitIn(labels["le"] ?? ""), count: value }));
  return { buckets: added(buckets), sum: add(`${name}_sum`), count: add(`${name}_count`) };
}

/** One bucket for each limit, the least first. */
function added(buckets: Histogram["buckets"]): Histogram["buckets"] {
  const counts = new Map<number, number>();
  for (const { limit, count } of buckets) counts.set(limit, (counts.get(limit) ?? 0) + count);
  return [...counts].map(([limit, count]) => ({ limit, count })).sort((a, b) => a.limit - b.limit);
}

function limitIn(text: string): number {
  return text === "+Inf" ? Number.POSITIVE_INFINITY : Number(text);
}

function labelsIn(text: string): Labels {
  const pairs = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  return Object.fromEntries(pairs.map(([, key = "", value = ""]) => [key, value]));
}

/** What was added between two readings. */
export function between(before: Histogram, after: Histogram): Histogram {
  const had = new Map(before.buckets.map(({ limit, count }) => [limit, count]));
  return {
    buckets: after.buckets.map(({ limit, count }) => ({ limit, count: count - (had.get(limit) ?? 0) })),
    sum: after.sum - before.sum,
    count: after.count - before.count,
  };
}

/** All of them in one. */
export function together(histograms: readonly Histogram[]): Histogram {
  const sumOf = (pick: (histogram: Histogram) => number) =>
    histograms.reduce((sum, histogram) => sum + pick(histogram), 0);
  const buckets = added(histograms.flatMap((histogram) => histogram.buckets));
  return { buckets, sum: sumOf(({ sum }) => sum), count: sumOf(({ count }) => count) };
}

/** NaN of nothing. */
export function meanOf({ sum, count }: Histogram): number {
  return sum / count;
}

/** The least limit that so large a part of all is not above: a histogram knows no more. NaN of nothing. */
export function limitOf({ buckets, count }: Histogram, part: number): number {
  if (count === 0) return Number.NaN;
  return buckets.find((bucket) => bucket.count >= part * count)?.limit ?? Number.POSITIVE_INFINITY;
}
