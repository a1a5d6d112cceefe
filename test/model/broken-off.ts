// SPDX-License-Identifier: Apache-2.0
import { admission, binder, collectionOf, forged, releaser, repairer } from "./actors.ts";
import type { Scenario } from "./run.ts";
import { claim, handMade, held, POOLS, reserved, V, X } from "./seeds.ts";

const pools = POOLS;

/** Claims that people made. */
export const HAND_MADE: readonly Scenario[] = [
  {
    title: "a claim made by hand is completed by two at once, and another identity wants the address",
    pools,
    seed: [handMade("a")],
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, admission("b", X)],
  },
  {
    title: "a claim made by hand is completed by two of which one takes the other for broken off, and a pod",
    long: true,
    pools,
    seed: [handMade("a")],
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, binder({ claim: "a" })],
    time: [1_500],
  },
  {
    title:
      "a claim made by hand is completed by one that is slow, and by a review that takes it for broken off",
    long: true,
    pools,
    seed: [handMade("a")],
    actors: [admission("a", X), forged("a", [X])],
    time: [1_500],
  },
  {
    title: "a claim made by hand is completed, against the garbage collector and a pod",
    long: true,
    pools,
    seed: [handMade("a")],
    actors: [admission("a", X), collectionOf(X), binder({ claim: "a" }), releaser("a")],
  },
];

/** What broke off, and what is undone. */
export const BROKEN_OFF: readonly Scenario[] = [
  {
    title:
      "a reservation that broke off long ago: two of its identity, the garbage collector, and another one that wants it",
    long: true,
    pools,
    seed: [reserved(X, "a")],
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, collectionOf(X), admission("b", X)],
  },
  {
    title: "an attempt that is slow, and another of its identity that takes it for broken off",
    long: true,
    pools,
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, binder({ claim: "a" })],
    time: [1_500],
  },
  {
    title: "an attempt that the garbage collector thinks broken off, and the repair of its claim",
    pools,
    actors: [admission("a", X), collectionOf(X), repairer("a")],
  },
  {
    title: "an attempt that is slow, and a review of its identity that takes it for broken off",
    pools,
    actors: [admission("a", X), forged("a", [X])],
    time: [1_500],
  },
  {
    title: "both families or none: the second one is taken, and the garbage collector is at the first",
    long: true,
    pools,
    seed: held("b", [V]),
    actors: [admission("a", X, V), collectionOf(X), admission("c", X), releaser("b")],
  },
  {
    title: "both families or none: the garbage collector is at both",
    long: true,
    pools,
    actors: [admission("a", X, V), collectionOf(X), collectionOf(V), binder({ claim: "a" })],
  },
  {
    title: "a claim gets its second family, the garbage collector at it, and a pod",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", X, V), collectionOf(V), binder({ claim: "a" }), admission("b", V)],
  },
  {
    title:
      "a claim without its reservation: repaired twice, admitted, bound, and another identity wants the address",
    long: true,
    pools,
    seed: [claim("a", [X])],
    actors: [
      repairer("a"),
      { ...repairer("a"), name: "repair a too" },
      admission("a", X),
      binder({ claim: "a" }),
      admission("b", X),
    ],
  },
  {
    title: "a claim made by hand without its reservation, whose address another identity has",
    pools,
    seed: [claim("a", [X], { handMade: true }), ...held("b", [X])],
    actors: [repairer("a"), admission("a", X), releaser("b"), binder({ claim: "a" })],
  },
];
