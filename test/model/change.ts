// SPDX-License-Identifier: Apache-2.0
import {
  admission,
  binder,
  collectionOf,
  collector,
  detacher,
  inventoryOf,
  releaser,
  repairer,
  visit,
} from "./actors.ts";
import type { Scenario } from "./run.ts";
import { BEGIN } from "./run-state.ts";
import { bound, held, POOLS, reserved, V, X, Y, Z } from "./seeds.ts";

const pools = POOLS;

/** A claim at rest whose request changes. */
export const SWAPS: readonly Scenario[] = [
  {
    title: "swap against the garbage collector of the new address, and a pod",
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), collectionOf(Y), binder({ claim: "a" })],
  },
  {
    title: "swap against the garbage collector of the old address, and another identity that wants it",
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), collectionOf(X), admission("b", X)],
    time: [30_000],
  },
  {
    title: "swap and swap back",
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), admission("a", X)],
  },
  {
    title: "swap against a release, and a pod",
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), releaser("a"), binder({ claim: "a" })],
  },
  {
    title: "swap against the garbage collector of the new address, another identity that wants it, and a pod",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), collectionOf(Y), admission("b", Y), binder({ claim: "a" })],
  },
  {
    title: "swap against the garbage collector of the old address, another identity that wants it, and a pod",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), collectionOf(X), admission("b", X), binder({ claim: "a" })],
    time: [30_000],
  },
  {
    title: "swap and swap back, and a pod",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), admission("a", X), binder({ claim: "a" })],
  },
  {
    title: "swap and swap back, the garbage collector of the old address, and another identity that wants it",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), admission("a", X), collectionOf(X), admission("b", X)],
  },
  {
    title: "swaps to two different addresses, and a pod",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), admission("a", Z), binder({ claim: "a" })],
  },
  {
    title: "swaps to two different addresses, and the garbage collector of one of them",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), admission("a", Z), collectionOf(Y)],
  },
  {
    title: "swap against a release, the garbage collector, and another identity that wants the old address",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), releaser("a"), collectionOf(Y), admission("b", X)],
  },
  {
    title: "swap against the garbage collector of both addresses",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [admission("a", Y), collectionOf(X), collectionOf(Y), repairer("a")],
  },
];

/** A sandbox that ends, and one that follows it. */
export const SANDBOXES: readonly Scenario[] = [
  {
    title: "the sandbox of a pod is made anew while its claim is changed",
    pools,
    seed: held("a", [X], bound("a", "ended")),
    actors: [binder({ claim: "a" }), admission("a", Y), admission("b", X)],
  },
  {
    title: "the sandbox of a pod is made anew while its claim is released, and by the garbage collector too",
    pools,
    seed: held("a", [X], bound("a", "ended")),
    actors: [binder({ claim: "a" }), releaser("a"), collector(inventoryOf("none"))],
  },
  {
    title: "a pod, and one of the same name that asks for something else and is never made",
    pools,
    actors: [visit("a", [X]), admission("a", Y)],
  },
  {
    title:
      "a pod whose replica's view lags, and one of the same name that asks for something else and is never made",
    long: true,
    pools,
    seed: held("a", [X], { request: { addresses: [X] } }),
    actors: [
      visit("a", [X], { lags: { claims: "start", reservations: "start" } }),
      admission("a", Y),
      collectionOf(X),
    ],
  },
  {
    title: "a claim moves to a pod on another node when the sandbox was seen to end, not before",
    pools,
    seed: held("a", [X], bound("a", "up")),
    actors: [detacher("a"), binder({ claim: "a", uid: "u-2", node: "n2" }), admission("a", Y), releaser("a")],
  },
];

/** Addresses that are cooling. */
export const COOLING: readonly Scenario[] = [
  {
    title: "an address is taken back while it cools, by two of its identity at once, and another wants it",
    long: true,
    pools,
    seed: [reserved(X, "a", { releasedAt: BEGIN - 29_000 })],
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, admission("b", X)],
    time: [1_500],
  },
  {
    title: "an address is taken back while it cools, with one that another identity has",
    pools,
    seed: [reserved(X, "a", { releasedAt: BEGIN }), ...held("b", [V])],
    actors: [admission("a", X, V), admission("b", X), releaser("b")],
  },
  {
    title: "an address is taken back while it cools, and released again",
    long: true,
    pools,
    seed: [reserved(X, "a", { releasedAt: BEGIN })],
    actors: [admission("a", X), releaser("a"), collectionOf(X), binder({ claim: "a" })],
  },
  {
    title: "an address has cooled: the garbage collector, its identity and another one",
    pools,
    seed: [reserved(X, "a", { releasedAt: BEGIN - 30_000 })],
    actors: [collector(inventoryOf("all")), admission("a", X), admission("b", X)],
  },
  {
    title:
      "a release that broke off is finished by the garbage collector, twice, while the identity is admitted again",
    long: true,
    pools,
    seed: held("a", [X], { releasing: true }),
    actors: [
      collector(inventoryOf("all")),
      { ...releaser("a"), name: "gc 2" },
      admission("a", X),
      binder({ claim: "a" }),
    ],
  },
  {
    title: "a release that broke off, and another identity that wants the address when it has cooled",
    pools,
    seed: held("a", [X], { releasing: true }),
    actors: [collector(inventoryOf("all")), admission("b", X), binder({ claim: "b" })],
    time: [30_000],
  },
];
