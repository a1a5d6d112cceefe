// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { sameSet } from "../../allocator/base/same-set.ts";
import { allocateSlot } from "../../allocator/demand/slots.ts";
import { repairClaim } from "../../allocator/gc/claim-repair.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { ORPHAN_GRACE_MS } from "../../allocator/gc/orphans.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { type BindingEvidence, bind, isDetached } from "../../allocator/lifecycle/bind.ts";
import { deleteOrphan, isBrokenOff } from "../../allocator/lifecycle/orphan-mark.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { claimKey, type Retention } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import { workloadFactsOf } from "../support/fixtures.ts";
import type { Actor } from "./run.ts";
import { keyOf } from "./seeds.ts";

const RELEASE: Retention = { whenDeleted: "Release", whenScaled: "Release", ttlMs: null };

/** What an identity asks for: exactly these addresses, or any of the pools in this order. */
export type Wanted = { readonly exact: readonly Address[] } | { readonly pools: readonly string[] };

type Extra = Omit<Partial<Actor>, "act">;

/** The request of a StatefulSet's only pod. */
export function allocationOf(
  name: string,
  resolved: Wanted,
  more: Partial<AllocationRequest> = {},
): AllocationRequest {
  const asked = "exact" in resolved ? { addresses: resolved.exact } : { pools: resolved.pools };
  return {
    key: keyOf(name),
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name, ordinal: 0 },
    request: {},
    retention: RELEASE,
    constraints: { namespace: "shop", name, namespaceLabels: {}, podLabels: {}, ...asked },
    ...more,
  };
}

/** Admission of a pod of the identity. */
export function reserver(allocation: AllocationRequest, extra: Extra = {}): Actor {
  return {
    name: `reserve ${allocation.key.name}`,
    forgets: true,
    ...extra,
    async act({ context, answered }) {
      const got = await reserve(context, allocation, "pod");
      if (!isRefusal(got)) answered(got.claim);
    },
  };
}

/** Admission of a pod that asks for exactly these. */
export function admission(name: string, ...exact: readonly Address[]): Actor {
  const title = `${name} asks for ${exact.join(" and ")}`;
  return reserver(allocationOf(name, { exact }, { request: { addresses: exact } }), { name: title });
}

/** Admission of a pod of a set; `token` finds its hold again. */
export function slotAllocator(
  slots: readonly AllocationRequest[],
  inventory: ClusterState,
  extra: Extra = {},
): Actor {
  return {
    name: "allocate slot",
    forgets: slots.length === 1,
    ...extra,
    async act({ name, context, state, answered }) {
      const got = await allocateSlot(context, inventory, slots);
      if (isRefusal(got)) return;
      answered(got.claim);
      state.holdGiven(name, got.claim);
    },
  };
}

/**
 * The review of a pod that nobody has seen: it may be forged, in another's name, or refused after it. Nothing of a claim
 * that is there changes by it.
 */
export function review(allocation: AllocationRequest, extra: Extra = {}): Actor {
  return {
    name: `review ${allocation.key.name}`,
    forgets: true,
    ...extra,
    async act({ context, state, name, answered }) {
      state.reviewers.add(name);
      const got = await reserve(context, allocation, "nothing");
      if (
        !isRefusal(got) &&
        got.besideClaim.length === 0 &&
        sameSet(got.addresses, got.claim.record.addresses)
      )
        answered(got.claim);
    },
  };
}

/** In the name of another's claim, for exactly these. */
export function forged(
  name: string,
  exact: readonly Address[],
  more: Partial<AllocationRequest> = {},
): Actor {
  const title = `forged: ${name} asks for ${exact.join(" and ")}`;
  return review(allocationOf(name, { exact }, { request: { addresses: exact }, ...more }), { name: title });
}

/** A pod that asks for its claim at ADD. */
export interface Pod {
  readonly claim: string;
  readonly node?: string;
  readonly uid?: string;
  readonly token?: string;
  readonly facts?: Partial<BindingEvidence>;
}

/** CNI ADD of a pod: the claim is bound, and a sandbox goes up with its addresses. */
export function binder(pod: Pod, extra: Extra = {}): Actor {
  const { claim, node = "n1", uid = `u-${claim}`, token = "" } = pod;
  const facts: BindingEvidence = { fenced: false, holdExpired: false, ...pod.facts };
  return {
    name: `bind ${claim}`,
    ...extra,
    async act({ name, context, state }) {
      const target = { name: claim, uid, node, token, containerID: `of ${name}` };
      const key = claimKey(keyOf(claim));
      // As the cluster's binder does: by what it knows of the claim, which may be old when it writes.
      const known = (await context.store.get("claim", key)) ?? key;
      const bound = await bind(context, known, target, async () => facts);
      if (!isRefusal(bound)) state.assign(name, bound);
    },
  };
}

/** A pod that asks for exactly these, from its admission to its ADD. */
export function visit(claim: string, exact: readonly Address[], extra: Extra = {}): Actor {
  const allocation = allocationOf(claim, { exact }, { request: { addresses: exact } });
  return {
    name: `pod ${claim} with ${exact.join(" and ")}`,
    ...extra,
    async act({ name, context, state, answered }) {
      const got = await reserve(context, allocation, "pod");
      if (isRefusal(got)) return;
      answered(got.claim);
      const assigned = got.claim.record.addresses;
      const target = { name: claim, uid: name, node: "n1", token: "", containerID: `of ${name}`, assigned };
      const facts = async () => ({ fenced: false, holdExpired: false });
      const bound = await bind(context, got.claim.key, target, facts);
      if (isRefusal(bound)) return;
      state.assign(name, bound);
      state.mustHave(name, exact);
    },
  };
}

/** CNI DEL of the sandbox that the claim's status names, and the report of its end. */
export function detacher(claim: string, extra: Extra = {}): Actor {
  return {
    name: `detach ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      const attachment = seen?.record.status.attachment;
      if (seen === undefined || attachment === undefined) return;
      await context.store.report(seen, { attachment: { ...attachment, detached: true } });
    },
  };
}

/** The identity is not needed any more: its claim is released, unless it is in use. */
export function releaser(claim: string, extra: Extra = {}): Actor {
  return {
    name: `release ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      if (seen !== undefined && isDetached(seen.record)) await release(context, seen);
    },
  };
}

/** The garbage collector's step on one address, at any moment: it needs no grace to be safe. */
export function collectionOf(address: Address, extra: Extra = {}): Actor {
  return {
    name: `collect ${address}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("reservation", address);
      if (seen?.record.releasedAt === undefined && seen !== undefined) await deleteOrphan(context, seen);
    },
  };
}

/** The same of what looks broken off. Where the store stamps seconds, a reserver that was quick relies on nobody coming sooner. */
export function patientCollectionOf(address: Address, extra: Extra = {}): Actor {
  return {
    name: `collect ${address} if it is old`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("reservation", address);
      if (seen === undefined || seen.record.releasedAt !== undefined) return;
      if (isBrokenOff(context, seen)) await deleteOrphan(context, seen);
    },
  };
}

/** The garbage collector's step on one claim that may lack a reservation. */
export function repairer(claim: string, extra: Extra = {}): Actor {
  return {
    name: `repair ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      if (seen !== undefined) await repairClaim(context, seen);
    },
  };
}

/** The whole garbage collector: two passes, with the grace of an orphan in between. */
export function collector(inventory: ClusterState, extra: Extra = {}): Actor {
  return {
    name: "gc",
    ...extra,
    async act({ context, wait }) {
      const collector = new GarbageCollector(context, inventory);
      await collector.pass();
      await wait(ORPHAN_GRACE_MS);
      await collector.pass();
    },
  };
}

/** A world in which no pod exists, and every workload, or none. */
export function inventoryOf(workloads: "all" | "none"): ClusterState {
  return {
    pod: async () => undefined,
    workload: async (ref) =>
      workloads === "none" ? undefined : workloadFactsOf({ ...ref, uid: "", replicas: 9 }),
    namespace: async () => undefined,
    fenced: async () => false,
  };
}
