// SPDX-License-Identifier: Apache-2.0
import { allocationOf, binder, collectionOf, releaser, reserver } from "./actors.ts";
import type { Actor, Scenario } from "./run.ts";
import { POOLS, X } from "./seeds.ts";
import { BLIND, type Lags, LIVE } from "./sight.ts";

/** Those of reserve_model.py: two admissions of a, one of b, the garbage collector, both binders, and a release of a. */
export function racers(lags: Lags): readonly Actor[] {
  return [
    reserver(allocationOf("a", { pools: ["x", "y"] }), { name: "a XY", lags }),
    reserver(allocationOf("a", { pools: ["y", "x"] }), { name: "a YX", lags }),
    reserver(allocationOf("b", { exact: [X] }), { name: "b X", lags }),
    collectionOf(X, { name: "collect X" }),
    binder({ claim: "a" }),
    binder({ claim: "b" }),
    releaser("a"),
  ];
}

/** Watches that lag each in its own way. */
export const LAGS: ReadonlyMap<string, Lags> = new Map([
  // name -> lags
  ["views that show nothing", BLIND],
  ["views that do not lag", LIVE],
  ["views as of the beginning of each", { claims: "start", reservations: "start" }],
  [
    "claims that do not lag, reservations as of the beginning of each",
    { claims: "none", reservations: "start" },
  ],
  [
    "reservations that do not lag, claims as of the beginning of each",
    { claims: "start", reservations: "none" },
  ],
]);

/** Every choice of so many of the racers, in which at least one reserves. */
export function races(count: number, lagging: string): Scenario[] {
  const all = racers(LAGS.get(lagging) ?? BLIND);
  return choices(all, count)
    .filter((actors) => actors.some((actor) => all.indexOf(actor) < 3))
    .map((actors) => ({
      title: `${actors.map(({ name }) => name).join(", ")}: ${lagging}`,
      pools: POOLS,
      actors,
    }));
}

function choices<T>(all: readonly T[], count: number): T[][] {
  if (count === 0) return [[]];
  return all.flatMap((one, i) => choices(all.slice(i + 1), count - 1).map((rest) => [one, ...rest]));
}
