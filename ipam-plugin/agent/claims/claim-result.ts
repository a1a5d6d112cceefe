// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import { MIRROR_POD_ANNOTATION } from "../../../allocator/demand/pod-allocation.ts";
import { ASSIGNED_CLAIM } from "../../../allocator/manifest/annotations.ts";
import { type Claim, claimKey } from "../../../allocator/model/claim.ts";
import { workloadOf } from "../../../allocator/model/claim-workload.ts";
import type { PodState } from "../../../allocator/model/cluster-state.ts";
import { describeIdentity } from "../../../allocator/model/identity.ts";
import { macOn } from "../../../allocator/model/interface-macs.ts";
import { addressesOn, formatHolding, namesOf, placesOf } from "../../../allocator/model/interfaces.ts";
import { type Pool, rangeOf } from "../../../allocator/pool/pool.ts";
import type { ResultAddress } from "../../cni/result.ts";
import { networkNames } from "./claim-networks.ts";
import type { AttachRequest, ClaimResult, NoClaim, PodRef, RequestedMac } from "./claim-source.ts";
import { type PoolsOfAddresses, poolFor } from "./pool-for-address.ts";

// What an ADD is answered is the same whoever keeps the claims: this process, or an API server.

export const NO_CLAIM: NoClaim = { kind: "unclaimed" };

/** The addresses of the claim that the interface gets, with what their pools say about reaching it. `annotations`: of its pod, as far as known. */
export function resultOf(
  view: PoolsOfAddresses,
  claim: Claim,
  request: Pick<AttachRequest, "attachment" | "pod">,
  annotations: Labels | undefined,
): ClaimResult | Refusal {
  const addresses: ResultAddress[] = [];
  const pools = new Set<Pool>();
  const served = servedBy(claim, request);
  const names = networkNames(request, annotations ?? {});
  for (const address of served) {
    const pool = poolFor(view, claim, { address, names });
    if (isRefusal(pool)) return pool;
    const range = pool && rangeOf(pool, address);
    if (pool === undefined || range === undefined) {
      return refuse(
        "ADDRESS_OUTSIDE",
        `address ${address} of claim ${claimKey(claim)} is in no pool any more; put its pool back`,
        {
          address,
          claim: claimKey(claim),
        },
      );
    }
    pools.add(pool);
    const { prefixLength, gateway } = range;
    addresses.push({ address, prefixLength, ...(gateway === undefined ? {} : { gateway }) });
  }
  const families = new Set(served.map((address) => address.includes(":")));
  const routes = [...pools].flatMap((pool) => pool.spec.routes ?? []);
  return {
    kind: "claimed",
    claim: claimKey(claim),
    addresses,
    routes: routes.filter((route) => families.has(route.dst.includes(":"))),
    dns: [...pools].find((pool) => pool.spec.dns !== undefined)?.spec.dns ?? {},
  };
}

/** What the interface that is being attached gets, if the claim serves it. */
function servedBy(claim: Claim, { attachment }: Pick<AttachRequest, "attachment">): Claim["addresses"] {
  return addressesOn(claim, attachment.interface) ?? claim.addresses;
}

/**
 * Whether the claim serves that interface of its pod. One that names interfaces serves those; any other the one that it is for, or
 * that has it already: `other` is known to, or none is.
 */
export function serves(
  claim: Claim,
  { attachment }: Pick<AttachRequest, "attachment">,
  other: string | undefined,
): boolean {
  const named = addressesOn(claim, attachment.interface);
  if (named !== undefined) return named.length > 0;
  const only = claim.interface ?? other;
  return only === undefined || only === attachment.interface;
}

/** The same of a claim that an ADD of this process has bound: its binding says which interface has it. */
export function servesBound(claim: Claim, request: AttachRequest): boolean {
  return serves(claim, request, claim.binding?.interface ?? "");
}

/** The interfaces that the claim serves beside each other; absent: it serves one. */
export function besideOf(claim: Claim): { readonly interfaces?: readonly string[] } {
  const interfaces = placesOf(claim);
  return interfaces === undefined ? {} : { interfaces: namesOf(interfaces) };
}

/**
 * An ADD that was given up is not alone with its claim any more. Asked between a read and the write that compares with
 * it, so that nothing of it comes after what the next sandbox wrote.
 */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true)
    throw new BerthError("TIMED_OUT", "the ADD was given up while its claim was bound");
}

/**
 * Another pod has the name by now, and the claim is that one's. A static pod's UID is not that of its object; where
 * the runtime says none, its annotations may tell.
 */
export function isReplaced(
  there: Pick<PodState, "uid" | "annotations">,
  { pod: { uid }, annotations: own }: AttachRequest,
): boolean {
  if (uid === "") return own !== undefined && own[ASSIGNED_CLAIM] !== there.annotations[ASSIGNED_CLAIM];
  return there.uid !== "" && there.uid !== uid && there.annotations[MIRROR_POD_ANNOTATION] === undefined;
}

export function podReplaced(pod: PodRef): Refusal {
  const key = `${pod.namespace}/${pod.name}`;
  const words = `the pod ${key} that this sandbox is for is deleted, and another one has its name and its claim`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: pod.name });
}

export function changed(key: string): Refusal {
  const words = `claim ${key} was changed or given back while it was being attached; try again`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}

/** For a pod without a request, on a network with pools, whose name is that of an ordinal or a slot that has a claim. */
export function ofWorkload(claim: Claim, pools: readonly string[]): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} is kept for ${describeIdentity(claim.identity)}, and this pod did not ask for it: it gets no address of ${pools.join(", ")} under this name before the claim is released; wait, or give this pod another name`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}

/**
 * For a pod that asked and was never admitted, or whose claim was released while it lived. `inOthers`: it asked in other
 * systems' annotations only, so it may have been left to them.
 */
export function missing(pod: Pick<PodRef, "namespace" | "name">, inOthers = false): Refusal {
  const key = `${pod.namespace}/${pod.name}`;
  const why = inOthers
    ? "asks in another system's annotations for what no pool of Berth has, or did not pass the Berth webhook; write berth.dev/ips or berth.dev/pools, and create it again"
    : "asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again";
  return refuse("CLAIM_MISSING", `pod ${key} ${why}`, { claim: key, pod: pod.name });
}

/** For a runtime that asks for addresses which the claim does not have; undefined when it asks for none. */
export function requestMismatch(claim: Claim, request: AttachRequest): Refusal | undefined {
  return addressMismatch(claim, request) ?? macMismatch(claim, request);
}

/** Nobody but the main plugin can give the interface its MAC address, and it does not if nobody tells it. */
function macMismatch(claim: Claim, { attachment, mac: said }: AttachRequest): Refusal | undefined {
  const { interface: name } = attachment;
  const mac = macOn(claim, name);
  const key = claimKey(claim);
  if (mac === undefined) return said && macOfPool(said);
  if (said?.mac === mac) return undefined;
  const words =
    said === undefined
      ? `claim ${key} has MAC address ${mac} for ${name}, and nobody tells the main plugin; declare "capabilities": {"mac": true} in the configuration of bridge, macvlan, or tuning behind another, and let the runtime say it (Multus: mac of the network in the pod's annotation)`
      : `claim ${key} has MAC address ${mac} for ${name}, and the runtime says ${said.mac}; remove one of the two requests`;
  return refuse("CLAIM_CHANGED", words, { claim: key });
}

/** For a pod without a claim, or one whose claim has none for the interface. */
export function macOfPool({ mac, pool }: RequestedMac): Refusal | undefined {
  if (pool === undefined) return undefined;
  const words = `MAC address ${mac} is of pool "${pool}", and this pod did not ask for it: another one may have it; write it into berth.dev/mac of the pod`;
  return refuse("POOL_FORBIDDEN", words, { pool });
}

function addressMismatch(claim: Claim, request: AttachRequest): Refusal | undefined {
  const served = servedBy(claim, request);
  const others = request.addresses.filter((address) => !served.includes(address));
  if (others.length === 0) return undefined;
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `the runtime asks for ${others.join(", ")}, and claim ${key} holds ${formatHolding(claim).join(", ")}; remove one of the two requests`,
    {
      claim: key,
    },
  );
}

/**
 * Whether a pod by itself is called as a place whose claim it finds. Bound before that is settled, it would look as if the
 * workload's own pod had used the claim, which would stay for a workload that nobody may ever have kept. What the settling
 * refuses is decided when it is bound.
 */
export function isBarePodOfWorkloadName({ owner }: PodState, claim: Claim): boolean {
  return owner === undefined && workloadOf(claim) !== undefined;
}
