// SPDX-License-Identifier: Apache-2.0
// Builds allocation requests, for one pod's claim or for each slot of a set: which entry of a list it is, for whom it is held, how
// long it is kept.

import { counted } from "../base/counted.ts";
import { type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { type AllocationRequest, takingOver } from "../lifecycle/allocation-request.ts";
import { requestToStay } from "../lifecycle/existing-claim.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import { type Claim, type ClaimRequest, DEFAULT_RETENTION, type Retention } from "../model/claim.ts";
import type { NamespaceState } from "../model/cluster-state.ts";
import { type PodIdentity, slotName } from "../model/identity.ts";
import { interfacesOf } from "../model/interfaces.ts";
import type { PodNodes } from "../model/node-terms.ts";
import { isFollowed } from "../model/workload-kinds.ts";
import type { Networks } from "../planning/plan.ts";

/** Everything about a pod that decides which addresses it gets. */
export interface AllocationInput {
  readonly podIdentity: PodIdentity;
  readonly request: Request;
  readonly namespace: NamespaceState;
  readonly podLabels: Labels;
  /** Where the pod may run by its own spec, and which nodes there are; absent: anywhere, or neither is known. */
  readonly nodes?: PodNodes;
  /** The networks that it is attached to; absent: not known. */
  readonly networks?: Networks;
  /** `spec.ordinals.start`: the first entry of a list belongs to this ordinal. */
  readonly start: number;
  /** Names the claim of a pod that nothing else tells from others of its workload. */
  readonly token: string;
  /** Milliseconds since 1970, for the hold. */
  readonly now: number;
  /** As an allocation request has it. */
  readonly isKeptForOwner?: AllocationRequest["isKeptForOwner"];
}

/** The request of one pod; for a set see `slotRequests`. */
export function requestFor(input: AllocationInput): AllocationRequest | Refusal {
  const { podIdentity, request } = input;
  const entry = entryFor(input);
  if (entry !== undefined && "kind" in entry) return entry;
  const named = podIdentity.kind === "named";
  const allocation = requestOf(input, named ? podIdentity.claim : anonymousName(input.token), {
    identity: podIdentity.identity,
    request: claimRequestOf(request, entry),
    held: !named || podIdentity.byToken === true,
    // a CloneSet's pods are named too, but the next pod has another name
    retention: retentionOf(input, named && podIdentity.identity.kind !== "CloneSet"),
  });
  return saysWhat(request) ? allocation : { ...allocation, followsClaim: "handMade" };
}

/** The name of a claim for a pod that nothing tells from others of its workload: the pod finds the claim again by its token. */
export function anonymousName(token: string): string {
  return `c-${token.slice(0, 12)}`;
}

/** Whether it says which addresses it wants, not only that it wants to keep what it gets. */
function saysWhat({ entries, pools, interfacePools, families }: Request): boolean {
  return [entries, pools, interfacePools, families].some((said) => said !== undefined);
}

/** The request of a pod that asks for nothing itself and whose name has a claim: what the claim says counts. */
export function requestForClaim(input: AllocationInput, claim: Claim): AllocationRequest {
  const { podIdentity } = input;
  const { identity } = podIdentity;
  const held = podIdentity.kind === "named" && podIdentity.byToken === true;
  const own = { identity, request: requestToStay(claim), held, retention: claim.retention };
  return { ...requestOf({ ...input, request: {} }, claim.name, own), request: claim.request };
}

/** The request that the author of a claim wrote into its spec, whatever the claim holds by now. */
export function requestFromSpec(
  claim: Claim,
  namespace: NamespaceState,
  given: Pick<AllocationInput, "token" | "now">,
): AllocationRequest {
  const podIdentity = { kind: "named", claim: claim.name, identity: claim.identity } as const;
  const input = { podIdentity, request: {}, namespace, podLabels: {}, start: 0, ...given };
  const unreserved = { ...claim, addresses: [], nonce: "" };
  const request = { ...requestForClaim(input, unreserved), fromSpec: true } as const;
  return claim.takesOver === undefined
    ? request
    : takingOver(request, { name: claim.takesOver, wasUnused: false });
}

/** The requests of a Deployment's set, one for each slot, in the order of the list. */
export function slotRequests(input: AllocationInput, workload: string): AllocationRequest[] {
  const { identity } = input.podIdentity;
  return (input.request.entries ?? []).map((entry, slot) =>
    requestOf(input, slotName(workload, slot), {
      identity: { ...identity, slot },
      request: claimRequestOf(input.request, entry),
      held: true,
      retention: retentionOf(input, isFollowed(identity.apiVersion, identity.kind)),
    }),
  );
}

function requestOf(
  input: AllocationInput,
  name: string,
  {
    held,
    ...own
  }: Pick<AllocationRequest, "identity" | "request" | "retention"> & { readonly held: boolean },
): AllocationRequest {
  const { request, namespace, podLabels, nodes, networks, token, now, isKeptForOwner } = input;
  return {
    key: { namespace: namespace.name, name },
    ...own,
    constraints: {
      namespace: namespace.name,
      name,
      namespaceLabels: namespace.labels,
      podLabels,
      ...(nodes === undefined ? {} : { nodes }),
      ...(networks === undefined ? {} : { networks }),
      ...own.request,
      ...(own.request.fallback !== undefined && request.entries && { siblings: request.entries }),
    },
    ...(isKeptForOwner === undefined ? {} : { isKeptForOwner }),
    ...(request.defaultsFirst === true ? { defaultsFirst: true } : {}),
    ...(held ? { hold: { token, podName: "", podUID: "", node: "", since: now } } : {}),
  };
}

/** What is asked for the claim that gets this entry of the list. */
function claimRequestOf(request: Request, entry: AddressEntry | undefined): ClaimRequest {
  const { pools, interfacePools, families, fallback } = request;
  const interfaces = entry && interfacesOf(request.interfaces, entry);
  return {
    ...(entry === undefined ? {} : { addresses: entry }),
    ...(interfaces === undefined ? {} : { interfaces }),
    ...(pools === undefined ? {} : { pools }),
    ...(interfacePools === undefined ? {} : { interfacePools }),
    ...(families === undefined ? {} : { families }),
    ...(fallback === undefined || entry === undefined ? {} : { fallback }),
  };
}

/** A sticky pod without an owner is its own identity: it asks to keep its addresses when it is deleted. */
function retentionOf({ podIdentity, request }: AllocationInput, isFoundAgain: boolean): Retention {
  const ownIdentity = podIdentity.kind === "named" && podIdentity.identity.kind === "Pod";
  const base: Retention =
    ownIdentity && request.sticky === true
      ? { ...DEFAULT_RETENTION, whenDeleted: "Retain" }
      : DEFAULT_RETENTION;
  const asked = { ...base, ...request.retention };
  return isFoundAgain ? asked : { ...asked, whenDeleted: "Release" };
}

function entryFor({ podIdentity, request, start }: AllocationInput): AddressEntry | undefined | Refusal {
  const { entries } = request;
  if (entries === undefined) return undefined;
  const first = request.fromOrdinalZero === true ? 0 : start;
  const ordinal =
    podIdentity.kind === "named" ? (podIdentity.identity.ordinal ?? podIdentity.ordinal) : undefined;
  if (ordinal === undefined) {
    if (entries.length === 1) return entries[0];
    return refuse(
      "REQUEST_INVALID",
      `the request lists addresses for ${counted(entries.length, "pod")}, and this pod has no ordinal to choose by; give it one entry, or ask by berth.dev/pools where such pods are several`,
    );
  }
  const entry = entries[ordinal - first];
  return entry ?? listTooShort(entries.length, ordinal, first);
}

/** The words for a list that ends before the ordinal. */
export function listTooShort(entries: number, ordinal: number, start: number): Refusal {
  // other systems' keys that name one address cannot name a second
  const next = entries === 1 ? "write berth.dev/ips alone, with an entry for each ordinal," : "add an entry";
  return refuse(
    "LIST_TOO_SHORT",
    `the list has ${counted(entries, "entry", "entries")}, for ordinals ${start} to ${start + entries - 1}, and none for ordinal ${ordinal}; ${next} or lower replicas`,
    { ordinal: String(ordinal) },
  );
}
