// SPDX-License-Identifier: Apache-2.0

import { BerthError, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import type { RecordReader } from "../../../allocator/cache/reader.ts";
import { MIRROR_POD_ANNOTATION } from "../../../allocator/demand/pod-allocation.ts";
import { ASSIGNED_CLAIM } from "../../../allocator/manifest/annotations.ts";
import { type Claim, claimKey } from "../../../allocator/model/claim.ts";
import type { PodState } from "../../../allocator/model/cluster-state.ts";
import { describeIdentity } from "../../../allocator/model/identity.ts";
import { type Pool, rangeOf } from "../../../allocator/pool/pool.ts";
import type { ResultAddress } from "../../cni/result.ts";
import type { AttachRequest, ClaimResult, NoClaim, PodRef } from "./claim-source.ts";

// What an ADD is answered is the same whoever keeps the claims: this process, or an API server.

export const NO_CLAIM: NoClaim = { kind: "unclaimed" };

/** The addresses of the claim, with what its pools say about reaching it. */
export function resultOf(view: Pick<RecordReader, "poolOf">, claim: Claim): ClaimResult | Refusal {
  const addresses: ResultAddress[] = [];
  const pools = new Set<Pool>();
  for (const address of claim.addresses) {
    const pool = view.poolOf(address);
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
  const families = new Set(claim.addresses.map((address) => address.includes(":")));
  const routes = [...pools].flatMap((pool) => pool.spec.routes ?? []);
  return {
    kind: "claimed",
    claim: claimKey(claim),
    addresses,
    routes: routes.filter((route) => families.has(route.dst.includes(":"))),
    dns: [...pools].find((pool) => pool.spec.dns !== undefined)?.spec.dns ?? {},
  };
}

/** Whether the claim, bound to a pod, serves that interface of it. */
export function isOfInterface({ interface: only, binding }: Claim, { attachment }: AttachRequest): boolean {
  return (only ?? binding?.interface) === attachment.interface;
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

/** For a pod that asked for nothing, on a network with pools, and is called like an ordinal or a slot that has a claim. */
export function ofWorkload(claim: Claim, pools: readonly string[]): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} is kept for ${describeIdentity(claim.identity)}, and this pod did not ask for it: it gets no address of ${pools.join(", ")} under this name before the claim is released; wait, or give this pod another name`;
  return refuse("CLAIM_BUSY", words, { claim: key });
}

/** For a pod that asked and was never admitted, or whose claim somebody gave back while it lived. `inOthers`: in other systems' annotations alone, so that it may have been left to them. */
export function missing(pod: Pick<PodRef, "namespace" | "name">, inOthers = false): Refusal {
  const key = `${pod.namespace}/${pod.name}`;
  const why = inOthers
    ? "asks in another system's annotations for what no pool of Berth has, or did not pass the Berth webhook; write berth.dev/ips or berth.dev/pools, and create it again"
    : "asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again";
  return refuse("CLAIM_MISSING", `pod ${key} ${why}`, { claim: key, pod: pod.name });
}

/** For a runtime that asks for addresses which the claim does not have; undefined when it asks for none. */
export function requestMismatch(claim: Claim, asked: readonly string[]): Refusal | undefined {
  const others = asked.filter((address) => !claim.addresses.some((own) => own === address));
  if (others.length === 0) return undefined;
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `the runtime asks for ${others.join(", ")}, and claim ${key} holds ${claim.addresses.join(", ")}; remove one of the two requests`,
    {
      claim: key,
    },
  );
}
