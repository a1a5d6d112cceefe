// SPDX-License-Identifier: Apache-2.0
// How much of what is random or repeated is run: all of it, unless BERTH_RUNS says which share.

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
