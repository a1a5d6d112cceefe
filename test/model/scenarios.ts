// SPDX-License-Identifier: Apache-2.0
import { BLOCKS } from "./blocks.ts";
import { BROKEN_OFF, HAND_MADE } from "./broken-off.ts";
import { COOLING, SANDBOXES, SWAPS } from "./change.ts";
import { FORGED } from "./forged.ts";
import { LAGS, races } from "./race.ts";
import type { Scenario } from "./run.ts";
import { SETS } from "./sets.ts";
import { SINGLES } from "./singles.ts";
import { STAMPS } from "./stamps.ts";

/** Everything but the races. */
export const CHANGES: readonly Scenario[] = [
  ...SWAPS,
  ...SANDBOXES,
  ...COOLING,
  ...HAND_MADE,
  ...BROKEN_OFF,
  ...SETS,
  ...FORGED,
  ...BLOCKS,
  ...SINGLES,
  ...STAMPS,
];

/** The choices of so many racers, under views that lag in every way. */
export function allRaces(count: number): Scenario[] {
  return [...LAGS.keys()].flatMap((lagging) => races(count, lagging));
}
