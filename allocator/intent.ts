// SPDX-License-Identifier: Apache-2.0
import { type Claim, type ClaimRequest, DEFAULT_RETENTION, isReserved, type Retention } from "./claim.ts";
import { type Refusal, refuse } from "./errors.ts";
import { type PodStanding, slotName } from "./identity.ts";
import type { NamespaceFacts } from "./inventory.ts";
import type { Labels } from "./ports.ts";
import type { Entry, Request } from "./request.ts";
import type { Intent } from "./reserve.ts";

/** Everything about a pod that decides what it is given. */
export interface Applicant {
  readonly standing: PodStanding;
  readonly request: Request;
  readonly namespace: NamespaceFacts;
  readonly podLabels: Labels;
  /** `spec.ordinals.start`: the first entry of a list belongs to this ordinal. */
  readonly start: number;
  /** Pools with `authorization: ServiceAccount` that the pod's account may use. */
  readonly usable?: ReadonlySet<string>;
  /** Names the claim of a pod that nothing else tells from its like. */
  readonly token: string;
  /** Milliseconds since 1970, for the promise. */
  readonly now: number;
}

/** The wish of one pod; for a set see `slotIntents`. */
export function intentOf(applicant: Applicant): Intent | Refusal {
  const { standing, request } = applicant;
  const entry = entryFor(applicant);
  if (entry !== undefined && "kind" in entry) return entry;
  const named = standing.kind === "named";
  const intent = wish(applicant, named ? standing.claim : `c-${applicant.token.slice(0, 12)}`, {
    identity: standing.identity,
    entry,
    promised: !named || standing.byToken === true,
    retention: retentionOf(request, named && standing.identity.kind === "Pod"),
  });
  return saysWhat(request) ? intent : { ...intent, followsClaim: "handMade" };
}

/** Whether it says what it wants, not only that it wants to keep that. */
function saysWhat({ entries, pools, families }: Request): boolean {
  return entries !== undefined || pools !== undefined || families !== undefined;
}

/** The wish of a pod that asks for nothing itself and whose name has a claim: what the claim says goes. */
export function intentForClaim(applicant: Applicant, claim: Claim): Intent {
  const request: Request = {
    ...(claim.request.pools === undefined ? {} : { pools: claim.request.pools }),
    ...(claim.request.families === undefined ? {} : { families: claim.request.families }),
  };
  const entry = isReserved(claim) ? claim.addresses : claim.request.addresses;
  const own = { identity: applicant.standing.identity, entry, promised: false, retention: claim.retention };
  return { ...wish({ ...applicant, request }, claim.name, own), request: claim.request };
}

/** What the author of a claim wrote, whatever the claim holds by now. */
export function intentAsWritten(
  claim: Claim,
  namespace: NamespaceFacts,
  given: Pick<Applicant, "token" | "now">,
): Intent {
  const standing = { kind: "named", claim: claim.name, identity: claim.identity } as const;
  const applicant = { standing, request: {}, namespace, podLabels: {}, start: 0, ...given };
  return intentForClaim(applicant, { ...claim, addresses: [], nonce: "" });
}

/** The wishes of a Deployment's set, one for each slot, in the order of the list. */
export function slotIntents(applicant: Applicant, workload: string): Intent[] {
  const { identity } = applicant.standing;
  return (applicant.request.entries ?? []).map((entry, slot) =>
    wish(applicant, slotName(workload, slot), {
      identity: { ...identity, slot },
      entry,
      promised: true,
      retention: retentionOf(applicant.request, false),
    }),
  );
}

function wish(
  applicant: Applicant,
  name: string,
  own: { identity: Intent["identity"]; entry: Entry | undefined; promised: boolean; retention: Retention },
): Intent {
  const { request, namespace, podLabels, usable, token, now } = applicant;
  const wanted: ClaimRequest = {
    ...(own.entry === undefined ? {} : { addresses: own.entry }),
    ...(request.pools === undefined ? {} : { pools: request.pools }),
    ...(request.families === undefined ? {} : { families: request.families }),
  };
  return {
    key: { namespace: namespace.name, name },
    identity: own.identity,
    request: wanted,
    retention: own.retention,
    ask: {
      namespace: namespace.name,
      name,
      namespaceLabels: namespace.labels,
      podLabels,
      ...(own.entry === undefined ? {} : { entry: own.entry }),
      ...(request.pools === undefined ? {} : { pools: request.pools }),
      ...(request.families === undefined ? {} : { families: request.families }),
      ...(usable === undefined ? {} : { usable }),
    },
    ...(own.promised ? { promise: { token, podName: "", podUID: "", node: "", since: now } } : {}),
  };
}

/** A pod that asked to be sticky and has no owner is its own identity: deleting it is what it wants to survive. */
function retentionOf(request: Request, ownIdentity: boolean): Retention {
  const base: Retention =
    ownIdentity && request.sticky === true
      ? { ...DEFAULT_RETENTION, whenDeleted: "Retain" }
      : DEFAULT_RETENTION;
  return { ...base, ...request.retention };
}

function entryFor({ standing, request, start }: Applicant): Entry | undefined | Refusal {
  const { entries } = request;
  if (entries === undefined) return undefined;
  const ordinal = standing.kind === "named" ? standing.identity.ordinal : undefined;
  if (ordinal === undefined) {
    if (entries.length === 1) return entries[0];
    return refuse(
      "REQUEST_INVALID",
      `the request lists addresses for ${entries.length} pods, and this pod has no ordinal to choose by; give it one entry`,
    );
  }
  const entry = entries[ordinal - start];
  return entry ?? tooShort(entries.length, ordinal, start);
}

/** The words for a list that ends before the ordinal. */
export function tooShort(entries: number, ordinal: number, start: number): Refusal {
  return refuse(
    "LIST_TOO_SHORT",
    `the list has ${entries} ${entries === 1 ? "entry" : "entries"}, for ordinals ${start} to ${start + entries - 1}, and none for ordinal ${ordinal}; add an entry or lower replicas`,
    { ordinal: String(ordinal) },
  );
}
