// SPDX-License-Identifier: Apache-2.0

/** What is told of many measurements of one thing, in their unit. */
export interface Summary {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly least: number;
  readonly most: number;
}

/** One side measured against the other. */
export interface Comparison {
  /** Ours to theirs, of the medians over all rounds. */
  readonly ratio: number;
  /** The least and the greatest ratio that one round alone would have given: how far to trust `ratio`. */
  readonly least: number;
  readonly most: number;
}

/** Interpolates between the two nearest values (type 7 of Hyndman and Fan). Throws RangeError for no values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  if (low === undefined || high === undefined) throw new RangeError("there is no quantile of nothing");
  return low + (high - low) * (at - Math.floor(at));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Throws RangeError for no values. */
export function summarise(values: readonly number[]): Summary {
  return {
    count: values.length,
    p50: median(values),
    p99: quantile(values, 0.99),
    least: quantile(values, 0),
    most: quantile(values, 1),
  };
}

/** Both sides by rounds: the n-th of one was measured beside the n-th of the other. Throws RangeError for an empty round. */
export function compare(
  ours: readonly (readonly number[])[],
  theirs: readonly (readonly number[])[],
): Comparison {
  if (ours.length !== theirs.length) throw new RangeError("the sides differ in their rounds");
  const rounds = ours.map((round, i) => median(round) / median(theirs[i] ?? []));
  return {
    ratio: median(ours.flat()) / median(theirs.flat()),
    least: quantile(rounds, 0),
    most: quantile(rounds, 1),
  };
}

/** By how much the greatest value is above the least, as a part of the least: 0.2 is 20 %. */
export function spread(values: readonly number[]): number {
  return quantile(values, 1) / quantile(values, 0) - 1;
}
