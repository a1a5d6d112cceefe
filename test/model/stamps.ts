// SPDX-License-Identifier: Apache-2.0
import { takingOver } from "../../allocator/lifecycle/allocation-request.ts";
import {
  admission,
  allocationOf,
  binder,
  forged,
  patientCollectionOf,
  releaser,
  reserver,
} from "./actors.ts";
import type { Actor, Scenario } from "./run.ts";
import { held, POOLS, V, X } from "./seeds.ts";

const pools = POOLS;
const stampsSeconds = true;
/** Quick, and until what has no claim looks broken off. */
const time = [400, 8_000];
/** Until what was met is broken off, and what was not met is not. */
const waiting = [400, 1_500];

/** It remembers from one attempt to the next since when it has met a reservation. */
function mindful(actor: Actor): Actor {
  return { ...actor, forgets: false };
}

/** A store that stamps records with seconds: whoever is quick does not read back what it reserved (ADR 0044). */
export const STAMPS: readonly Scenario[] = [
  {
    title: "stamped: a new claim, the garbage collector of its address, and a pod",
    long: true,
    ...{ pools, stampsSeconds, time },
    actors: [admission("a", X), patientCollectionOf(X), binder({ claim: "a" })],
  },
  {
    title:
      "stamped: an attempt that is slow, another of its identity that takes it for broken off, and a pod",
    long: true,
    ...{ pools, stampsSeconds, time: waiting },
    actors: [
      admission("a", X),
      mindful({ ...admission("a", X), name: "a too" }),
      admission("b", X),
      binder({ claim: "a" }),
    ],
  },
  {
    title: "stamped: an attempt that is slow, and a review of its identity that takes it for broken off",
    long: true,
    ...{ pools, stampsSeconds, time: waiting },
    actors: [admission("a", X), mindful(forged("a", [X]))],
  },
  {
    title: "stamped: an attempt that is slow, one that takes over from its claim, and another identity",
    long: true,
    ...{ pools, stampsSeconds, time },
    actors: [
      admission("a", X),
      reserver(takingOver(allocationOf("n", { exact: [X] }), { name: "a", wasUnused: true })),
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
