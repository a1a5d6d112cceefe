// SPDX-License-Identifier: Apache-2.0
import {
  admission,
  allocationOf,
  binder,
  forged,
  patientCollectionOf,
  releaser,
  reserver,
} from "./actors.ts";
import type { Scenario } from "./run.ts";
import { held, POOLS, V, X } from "./seeds.ts";

const pools = POOLS;
const stampsSeconds = true;
/** Within a second, beyond it, and until what has no claim looks broken off. */
const time = [600, 900];

/** A store that stamps records with seconds: whoever is quick does not read back what it reserved (ADR 0044). */
export const STAMPS: readonly Scenario[] = [
  {
    title: "stamped: a new claim, the garbage collector of its address, and a pod",
    ...{ pools, stampsSeconds, time },
    actors: [admission("a", X), patientCollectionOf(X), binder({ claim: "a" })],
  },
  {
    title:
      "stamped: an attempt that is slow, another of its identity that takes it for broken off, and a pod",
    long: true,
    ...{ pools, stampsSeconds, time },
    actors: [admission("a", X), { ...admission("a", X), name: "a too" }, binder({ claim: "a" })],
  },
  {
    title: "stamped: an attempt that is slow, and a review of its identity that takes it for broken off",
    ...{ pools, stampsSeconds, time },
    actors: [admission("a", X), forged("a", [X])],
  },
  {
    title: "stamped: an attempt that is slow, one that takes over from its claim, and another identity",
    long: true,
    ...{ pools, stampsSeconds, time },
    actors: [
      admission("a", X),
      reserver(allocationOf("n", { exact: [X] }, { takesOver: { name: "a", wasUnused: true } })),
      admission("b", X),
    ],
  },
  {
    title: "stamped: both families or none, the garbage collector at both, and a pod",
    long: true,
    ...{ pools, stampsSeconds, time },
    actors: [admission("a", X, V), patientCollectionOf(X), patientCollectionOf(V), binder({ claim: "a" })],
  },
  {
    title: "stamped: an address of a claim that is released, and taken back while it cools",
    long: true,
    ...{ pools, stampsSeconds, time },
    seed: held("a", [X]),
    actors: [releaser("a"), admission("a", X), patientCollectionOf(X), binder({ claim: "a" })],
  },
];
