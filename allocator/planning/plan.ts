// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Address, Family } from "../ip/address.ts";
import type { AddressEntry } from "../model/address-request.ts";
import type { ClaimRequest } from "../model/claim.ts";
import type { Interfaces } from "../model/interfaces.ts";
import type { PodNodes } from "../model/node-terms.ts";
import type { Pool } from "../pool/pool.ts";

/** A claim of the same namespace, or several, that another one takes over from (ADR 0021). */
export interface Predecessor {
  readonly name: string | readonly string[];
  /** It was seen unused before it went, so that what it left may be taken although it does not cool yet. */
  readonly wasUnused: boolean;
}

/** The networks that a pod, or one of its interfaces, is attached to, so far as is known. */
export interface Networks {
  readonly names: readonly string[];
  /** To no other. */
  readonly isAll: boolean;
  /** To no other NetworkAttachmentDefinition, though its configuration may have another name. */
  readonly isAttachment?: boolean;
  /** interface -> its own, where it is known. */
  readonly on?: Readonly<Record<string, readonly string[]>>;
}

/**
 * What one identity needs, with everything that decides which pools are open to it. What addresses will do is said as a claim says it: for
 * one that is there this may be what it holds, and not what it once asked for.
 */
export interface AddressConstraints extends ClaimRequest {
  readonly namespace: string;
  /** Of the claim; seeds the choice, so that an identity tends to the same address. */
  readonly name: string;
  readonly namespaceLabels: Labels;
  readonly podLabels: Labels;
  readonly networks?: Networks;
  /** Where the pod may run by its own spec, and which nodes there are; absent: anywhere, or neither is known. */
  readonly nodes?: PodNodes;
  /** Pools with `authorization: ServiceAccount` that the pod's service account may use. */
  readonly usable?: ReadonlySet<string>;
  /** What the identity's claim holds already: kept where it still fits, and not counted against limits. */
  readonly ownAddresses?: readonly Address[];
  /** What cools after its own release, and would be its again: it is counted already. */
  readonly takesAgain?: readonly Address[];
  /** Of what it holds, what would cool then. */
  readonly drops?: readonly Address[];
  /** The interface of what the claim holds. */
  readonly heldOn?: Interfaces;
  /** Beside `fallback`: what the same list names for others, which is another's before it is anybody's. */
  readonly siblings?: readonly AddressEntry[];
  /** The claim got what it holds for the same request: it keeps that, although it may be another address. */
  readonly isAsGiven?: true;
  /** Of the pools that would do, those that go with the pod's other interfaces; absent: all. */
  readonly within?: ReadonlySet<Pool>;
  /** The claim whose addresses this one may take when no claim relies on them. */
  readonly takesOver?: Predecessor;
}

export interface Candidate {
  readonly address: Address;
  readonly pool: string;
  /** Why it goes before all others: the request names it, or the identity's own name leads to it. */
  readonly first?: "named" | "own";
}

/** One address of one family: the first candidate that can be created is it. */
export interface FamilyPlan {
  readonly family: Family;
  /** Of the pod, if the request names any. */
  readonly interface?: string;
  /** Of the candidates, what the request names, where others will do. */
  readonly named?: readonly Address[];
  /** Asked for by name: there is one candidate, and if it is taken the answer is a refusal. */
  readonly exact: boolean;
  /** Lazy and endless only as far as free addresses go; walk it once. */
  readonly candidates: Iterable<Candidate>;
  /** What to say when no candidate could be created; `skipped` of them are for others of the same review. */
  readonly exhausted: (skipped?: number) => Refusal;
}

export interface Plan {
  readonly kind: "take";
  /** What the claim holds and keeps. */
  readonly keep: readonly Address[];
  /** Of these, the interfaces. Absent: the request names none. */
  readonly keptOn?: Interfaces;
  readonly familyPlans: readonly FamilyPlan[];
}
