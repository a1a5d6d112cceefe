// SPDX-License-Identifier: Apache-2.0
// Reviews that are not what they say: in another's name, for other addresses, as another kind of owner.
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import {
  admission,
  binder,
  collectionOf,
  collector,
  forged,
  inventoryOf,
  releaser,
  visit,
} from "./actors.ts";
import type { Scenario } from "./run.ts";
import { bound, held, POOLS, reserved, V, X, Y } from "./seeds.ts";

const pools = POOLS;

/** As a second `kubectl create` without owners, with a retention of its own. */
const AS_POD: Partial<AllocationRequest> = {
  identity: { kind: "Pod", apiVersion: "v1", name: "a" },
  retention: { whenDeleted: "Release", whenScaled: "Release", ttlMs: 60_000 },
};

export const FORGED: readonly Scenario[] = [
  {
    title: "a review in the name of a claim at rest, another identity that wants its address, and its pod",
    pools,
    seed: held("a", [X]),
    actors: [forged("a", [Y]), admission("b", X), binder({ claim: "a" })],
  },
  {
    title: "a review in the name of a claim at rest, and the garbage collector of both addresses",
    pools,
    seed: held("a", [X]),
    actors: [forged("a", [Y]), collectionOf(X), collectionOf(Y)],
  },
  {
    title: "two reviews in the name of a claim at rest, and the pod that asks for the third address",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [forged("a", [Y]), forged("a", [X, V]), visit("a", [V])],
  },
  {
    title: "a review in the name of a claim whose sandbox is up, and one whose sandbox is made anew",
    pools,
    seed: [...held("a", [X], bound("a", "up")), ...held("b", [Y], bound("b", "ended"))],
    actors: [forged("a", [V]), forged("b", [V]), binder({ claim: "b" })],
  },
  {
    title: "a review as another kind of owner, while the claim is released",
    pools,
    seed: held("a", [X]),
    actors: [forged("a", [X], AS_POD), releaser("a"), binder({ claim: "a" })],
  },
  {
    title:
      "a review as another kind of owner for another address, and the garbage collector when the owner is gone",
    long: true,
    pools,
    seed: held("a", [X]),
    actors: [forged("a", [Y], AS_POD), collector(inventoryOf("none")), admission("b", X)],
  },
  {
    title: "a review that comes before the pod, which asks for something else",
    pools,
    actors: [forged("a", [X]), visit("a", [Y]), admission("b", X)],
  },
  {
    title: "a review for what cools, and another identity that wants it",
    pools,
    seed: [...held("a", [Y]), reserved(X, "a", { nonce: "of a", releasedAt: 999_990_000 })],
    actors: [forged("a", [X]), admission("b", X), binder({ claim: "a" })],
    time: [30_000],
  },
];
