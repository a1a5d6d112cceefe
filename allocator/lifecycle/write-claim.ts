// SPDX-License-Identifier: Apache-2.0
// One write of a claim for a request, and what is undone when it does not stand.

import { BerthError, type Refusal, refuse } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { type Address, compareAddresses } from "../ip/address.ts";
import { type Claim, claimKey, isBound } from "../model/claim.ts";
import { type Interfaces, isSameInterfaces } from "../model/interfaces.ts";
import type { Stored } from "../store/store.ts";
import type { AllocationRequest, Seen } from "./allocation-request.ts";

export function claimOf(
  allocation: AllocationRequest,
  known: Claim | undefined,
  to: {
    readonly addresses: readonly Address[];
    /** Of each; absent: the request names none. */
    readonly places?: Interfaces | undefined;
    readonly nonce: string;
    readonly now: number;
    readonly seen: Seen;
  },
): Claim {
  const said = {
    identity: allocation.identity,
    retention: allocation.retention,
    request: allocation.request,
  };
  // A claim that somebody else made meanwhile may be bound already.
  const bound =
    allocation.hold === undefined || known?.binding !== undefined ? {} : { binding: allocation.hold };
  const where = allocation.interface === undefined ? {} : { interface: allocation.interface };
  const addresses = [...to.addresses].sort(compareAddresses);
  const { interfaces: asked } = known?.handMade === true ? known.request : allocation.request;
  const chosen =
    to.places === undefined || isSameInterfaces(to.places, asked) ? {} : { interfaces: to.places };
  const got = { addresses, ...chosen, nonce: to.nonce, ...admission(known, to) };
  // made by an ADD, for a sandbox that is there: it waits for none
  if (known === undefined && allocation.hold !== undefined && allocation.hold.node !== "") {
    const { admittedAt: _, ...made } = got;
    return { ...allocation.key, ...said, ...where, ...bound, ...made, status: {} };
  }
  if (known === undefined) return { ...allocation.key, ...said, ...where, ...bound, ...got, status: {} };
  const { retained: _, interfaces: __, ...kept } = known;
  // What a person wrote into a claim stays theirs.
  return known.handMade === true ? { ...kept, ...got } : { ...kept, ...said, ...where, ...bound, ...got };
}

/**
 * A workload that changes is no pod that was admitted: a claim that was bound already does not wait for the next one by
 * that, and is let go as soon as nobody needs it.
 */
function admission(
  known: Claim | undefined,
  { now, seen }: { now: number; seen: Seen },
): Pick<Claim, "admittedAt"> {
  // after what it is bound to, whatever the clock says by which that was bound
  const earliest = known?.binding === undefined ? 0 : known.binding.since + 1;
  if (seen !== "workload" || known === undefined || !isBound(known))
    return { admittedAt: Math.max(now, earliest) };
  return known.admittedAt === undefined ? {} : { admittedAt: known.admittedAt };
}

export async function writeClaim(
  context: Context,
  known: Stored<"claim"> | undefined,
  next: Claim,
): Promise<Stored<"claim"> | undefined> {
  if (known === undefined) {
    const created = await context.store.create("claim", next);
    return created.kind === "created" ? created.stored : undefined;
  }
  const replaced = await context.store.replace("claim", known, next);
  return replaced.kind === "replaced" ? replaced.stored : undefined;
}

/** A namespace over its quota would take and give back an address at each attempt: it is asked before any is taken. */
export async function refusedBefore(context: Context, claim: Claim): Promise<Refusal | undefined> {
  try {
    await context.store.mayCreate?.(claim);
    return undefined;
  } catch (error) {
    return refusedBy(error, claim);
  }
}

/** Quota, policy and namespace are the user's business; anything else is thrown again. */
export function refusedBy(error: unknown, claim: Claim): Refusal {
  if (!(error instanceof BerthError) || error.code !== "WRITE_REFUSED") throw error;
  return refuse("CLAIM_REFUSED", error.message, { claim: claimKey(claim), namespace: claim.namespace });
}

/** The claim as it was before; if somebody changed it meanwhile, the next round looks at what is there. */
export async function undo(
  context: Context,
  written: Stored<"claim">,
  before: Stored<"claim"> | undefined,
): Promise<void> {
  if (before === undefined) await context.store.remove("claim", written);
  else await context.store.replace("claim", written, before.record);
}
