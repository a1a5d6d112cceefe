// SPDX-License-Identifier: Apache-2.0
// What is asked of `reserve`, and what it answers.

import type { Refusal } from "../base/errors.ts";
import type { Address } from "../ip/address.ts";
import type {
  Binding,
  Claim,
  ClaimAttachment,
  ClaimKey,
  ClaimRequest,
  Identity,
  Retention,
} from "../model/claim.ts";
import type { AddressConstraints, Predecessor } from "../planning/plan.ts";
import type { Stored } from "../store/store.ts";

/** Everything that `reserve` needs to make the claim of one identity. */
export interface AllocationRequest {
  readonly key: ClaimKey;
  readonly identity: Identity;
  readonly interface?: string;
  readonly request: ClaimRequest;
  readonly retention: Retention;
  readonly constraints: AddressConstraints;
  /** Promise the claim to this pod in the same write. */
  readonly hold?: Binding;
  /** Of one of several that a pod may have any of: why this pod cannot have this one, whoever has it now. Absent: it can. */
  readonly unfit?: Refusal;
  /** With `hold`: the sandbox that the claim is made for; where the store can, it is in the claim from its first write on. */
  readonly sandbox?: ClaimAttachment;
  /** Token of the hold that had expired, whose place this may take; absent: of none. */
  readonly replacesToken?: string;
  /**
   * What the claim of the name says goes, as it is when it is written: whatever claim it is, for a pod that asks for
   * nothing itself, or one that a person made, for a pod that does not say what it wants.
   */
  readonly followsClaim?: "any" | "handMade";
  /**
   * Whether the pod or workload is there that the request is of. Asked after the claim was read and before it is changed: a
   * writer may have stood still since it saw it. Absent: there is no need to ask.
   */
  readonly isThere?: () => Promise<boolean>;
  /**
   * Whether the claim of the name stays its workload's, whoever's pod comes with that name. Asked of the claim as it is
   * before it is written. Absent: a claim may pass to this identity.
   */
  readonly isKeptForOwner?: (claim: Claim) => Promise<boolean>;
  /** Of the first interface it asks for a default of the namespace alone, which a claim that a person made need not have. */
  readonly defaultsFirst?: true;
  /** It says what the claim of the name says itself: nobody else's request changes what a person made. */
  readonly fromSpec?: true;
  /** A person asks, for the claim that he has made: no other claim of the name will do. */
  readonly userRequested?: true;
}

/** The same for a claim that takes over from another one (ADR 0021). */
export function takingOver(request: AllocationRequest, takesOver: Predecessor): AllocationRequest {
  return { ...request, constraints: { ...request.constraints, takesOver } };
}

/**
 * What the caller has seen in the store, and so how far a claim that is there may be changed (ADR 0007); a new claim is
 * made in any case.
 *
 * | pod      | its pod: all that the request says is written                                              |
 * | workload | its workload: all but other addresses, for a pod may be there that has the present ones          |
 * | nothing  | a review, which anybody may send and no pod may follow: other addresses are held beside the claim |
 */
export type Seen = "pod" | "workload" | "nothing";

export interface Reserved {
  readonly kind: "reserved";
  readonly claim: Stored<"claim">;
  /** What is assigned to its pod: the claim's own, or what is held for the pod beside it until the pod is seen. */
  readonly addresses: readonly Address[];
  /** The same with their interfaces, as the pod reads it. */
  readonly assigned: readonly string[];
  /** Those of them that this call took beside what the claim has. */
  readonly besideClaim: readonly Address[];
  /** From here the claim waits for the pod of this call: it was made, held, or given more time. */
  readonly waits: boolean;
  /** Made by this call: whoever has the claim since has another revision of it. */
  readonly made: boolean;
}

/**
 * Another process is at work on the same identity; or it was given an address that a node has, of which the view had not heard:
 * `because` says so, should it stay so.
 */
export interface Contended {
  readonly kind: "contended";
  readonly because?: Refusal;
}

/** `again`: somebody changed the claim. */
export type Attempt = Reserved | Refusal | { readonly kind: "again" } | Contended;
