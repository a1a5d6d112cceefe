// SPDX-License-Identifier: Apache-2.0
// How much of what is random or repeated is run: all of it, unless BERTH_RUNS says which share.

import type { TestContext } from "node:test";
import { SeededRandom } from "./random.ts";

const SHARE = Number(process.env["BERTH_RUNS"] ?? 1);

/** Whether everything is run: for what has a long and a short form. */
export const isFull = SHARE >= 1;

/** Of a full number of runs those to be run here, at least `least`. */
export function runsOf(full: number, least = 1): number {
  return Math.max(Math.min(least, full), Math.round(full * SHARE));
}

/** An option of a test that is one of `count` alike, each with a number from 0: false, or why it is left out here. */
export function skipAllBut(count: number, full: number, n: number): false | string {
  const step = Math.max(1, Math.floor(full / Math.max(count, Math.round(full * SHARE))));
  return n % step === 0 ? false : "make soak and make proof run all";
}

const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);

/**
 * Of what is alike, such as the writes at which something dies, that which is run here, in its order: all of it where
 * everything is run, and elsewhere at least `least`, drawn anew in each run, so that in time all of it is. BERTH_SEED
 * draws the same again.
 */
export function drawn<T>(t: Pick<TestContext, "diagnostic">, all: readonly T[], least: number): readonly T[] {
  const some = someOf(all, runsOf(all.length, least), SEED);
  if (some.length < all.length)
    t.diagnostic(`BERTH_SEED=${SEED} draws ${JSON.stringify(some)} of ${all.length}; make proof runs all`);
  return some;
}

/** So many of them, in their order. Pure. */
export function someOf<T>(all: readonly T[], count: number, seed: number): readonly T[] {
  const random = new SeededRandom(seed);
  const left = [...all.keys()];
  while (left.length > count) left.splice(random.below(left.length), 1);
  return all.filter((_, n) => left.includes(n));
}

/** A death at each of these writes: before it, and after it. */
export function deathsAt<At>(
  writes: readonly At[],
): readonly { readonly failure: "before" | "after"; readonly at: At }[] {
  return (["before", "after"] as const).flatMap((failure) => writes.map((at) => ({ failure, at })));
}
