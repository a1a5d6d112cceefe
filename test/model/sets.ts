// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { allocationOf, binder, collectionOf, collector, inventoryOf, slotAllocator } from "./actors.ts";
import type { Actor, Scenario } from "./run.ts";
import { BEGIN } from "./run-state.ts";
import { BEFORE, claim, held, POOLS, X, Y } from "./seeds.ts";

const ALL = inventoryOf("all");
const pools = POOLS;

/** One slot of the set of Deployment d, wanted by the pod of this token. */
function slot(n: number, address: Address, token: string): AllocationRequest {
  return allocationOf(
    `s${n}`,
    { exact: [address] },
    {
      identity: { kind: "Deployment", apiVersion: "apps/v1", name: "d", slot: n },
      request: { addresses: [address] },
      hold: { token, podName: "", podUID: "", node: "", since: BEGIN },
    },
  );
}

/** The claim of a slot, which is held for a pod since long ago, or a minute ago, or is gone. */
function bound(n: number, address: Address, more: Partial<Claim>): ReturnType<typeof held> {
  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "d", slot: n };
  return held(`s${n}`, [address], { identity, request: { addresses: [address] }, ...more });
}

function one(token: string): Actor {
  return slotAllocator([slot(0, X, token)], ALL, { name: `slot for ${token}` });
}

function any(token: string): Actor {
  return slotAllocator([slot(0, X, token), slot(1, Y, token)], ALL, { name: `slot for ${token}` });
}

/** Pods of a Deployment that share a set of addresses. */
export const SETS: readonly Scenario[] = [
  { title: "two pods and one slot that is new", pools, actors: [one("t1"), one("t2")] },
  {
    title: "two pods of different templates and one slot that is new, and the first pod is bound",
    pools,
    actors: [
      one("t1"),
      slotAllocator([{ ...slot(0, X, "t2"), request: { addresses: [X], pools: ["x"] } }], ALL, {
        name: "slot for t2",
      }),
      binder({ claim: "s0", token: "t1" }),
    ],
  },
  {
    title: "two pods and one slot that is free, and the garbage collector at its address",
    pools,
    seed: bound(0, X, {}),
    actors: [one("t1"), one("t2"), collectionOf(X), binder({ claim: "s0", token: "t1" })],
  },
  {
    title: "two pods and a slot whose hold has expired, and the garbage collector takes it back",
    long: true,
    pools,
    seed: bound(0, X, {
      binding: { token: "t0", podName: "", podUID: "", node: "", since: BEFORE - 60_000 },
    }),
    actors: [one("t1"), one("t2"), collector(ALL), binder({ claim: "s0", token: "t1" })],
  },
  {
    title: "two pods and two slots",
    pools,
    seed: [...bound(0, X, {}), claim("b", [])],
    actors: [any("t1"), any("t2")],
  },
  {
    title: "three pods and two slots",
    pools,
    seed: [...bound(0, X, {}), ...bound(1, Y, {})],
    actors: [any("t1"), any("t2"), any("t3")],
  },
];
