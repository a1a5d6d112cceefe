// SPDX-License-Identifier: Apache-2.0

import type { Finding } from "../../allocator/gc/finding.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import {
  isDeclined,
  isEntryDeclined,
  isWaitingFor,
  neededBy,
} from "../../allocator/lifecycle/claim-owner.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import {
  namespaceOf,
  type PodState,
  type WorkloadAnswer,
  type WorkloadState,
} from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Backend, Objects } from "../backend/backend.ts";
import { containerOf, describeHolder, describeOwner } from "../backend/container-words.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import type { SurveyedPod } from "./pod-survey.ts";

/** Where pods, workloads and namespaces are looked up, and what of their annotations is for Berth. */
interface Sources extends Pick<Objects, "pod" | "workload" | "namespace"> {
  readonly own: OwnReader;
}

/**
 * Claims that hold addresses and that nobody needs: no pod that lives, no place that a living workload wants, no retention,
 * no person. A rule of its own, simpler than the one by which they are released: it is to find what that one
 * forgets. `isPart`: this user may not read the workloads, or the namespaces of all claims.
 */
export async function unneeded(
  {
    own,
    claims,
    pods,
    now,
  }: {
    readonly own: OwnReader;
    readonly claims: readonly Stored<"claim">[];
    readonly pods: readonly SurveyedPod[];
    readonly now: number;
  },
  backend: Backend,
): Promise<{ readonly findings: readonly Finding[]; readonly isPart: boolean }> {
  const suspects = claims.filter((claim) => isCandidate(claim, now));
  if (suspects.length === 0) return { findings: [], isPart: false };
  const seen = await ifAllowed(async () => {
    const { world, place } = backend;
    const first = await unneededOf(suspects, listedIn(pods, world, own));
    // one by one, as they are now: what came in between is seen
    const live: Sources = {
      own,
      pod: (namespace, name) => world.pod(namespace, name),
      workload: (ref) => world.workload(ref),
      namespace: (name) => world.namespace(name),
    };
    const { left, isPart } = await unneededOf(await again(first.left, backend), live);
    const findings = left.map(({ record }) => found(record, place));
    return { findings, isPart: first.isPart || isPart };
  });
  return seen ?? { findings: [], isPart: true };
}

/** Nothing says that it is to be kept, and it does not wait for a pod that was admitted just now. */
function isCandidate({ record, createdAt }: Stored<"claim">, now: number): boolean {
  const { handMade, nonce, releasing, deleting, retained, admittedAt = 0, binding } = record;
  if (handMade === true || nonce === "" || releasing === true || deleting === true) return false;
  if (retained !== undefined) return false;
  return now - Math.max(createdAt, admittedAt, binding?.since ?? 0) >= HOLD_TIMEOUT_MS;
}

/** Each workload and namespace is read once for all claims. */
function listedIn(survey: readonly SurveyedPod[], world: Objects, own: OwnReader): Sources {
  const pods = new Map(survey.map(({ state }) => [claimKey(state), state]));
  const workloads = new Map<string, Promise<WorkloadAnswer>>();
  const namespaces = new Map<string, ReturnType<Objects["namespace"]>>();
  return {
    own,
    namespace: (name) => {
      const known = namespaces.get(name) ?? world.namespace(name);
      namespaces.set(name, known);
      return known;
    },
    pod: async (namespace, name) => pods.get(claimKey({ namespace, name })),
    workload: (ref) => {
      const key = `${ref.apiVersion} ${ref.kind} ${claimKey(ref)}`;
      const known = workloads.get(key) ?? world.workload(ref);
      workloads.set(key, known);
      return known;
    },
  };
}

async function unneededOf(
  claims: readonly Stored<"claim">[],
  sources: Sources,
): Promise<{ readonly left: readonly Stored<"claim">[]; readonly isPart: boolean }> {
  const left: Stored<"claim">[] = [];
  let isPart = false;
  for (const claim of claims) {
    const isIts = await isNeeded(claim.record, sources);
    if (isIts === "unseen") isPart = true;
    else if (!isIts) left.push(claim);
  }
  return { left, isPart };
}

async function again(claims: readonly Stored<"claim">[], { store }: Backend): Promise<Stored<"claim">[]> {
  const unchanged: Stored<"claim">[] = [];
  for (const claim of claims) {
    const now = await store.get("claim", claim.key);
    if (now?.uid === claim.uid && now.revision === claim.revision) unchanged.push(now);
  }
  return unchanged;
}

/** `unseen`: its workload wants the place, and whether its template asks Berth this user may not know. */
type Need = boolean | "unseen";

async function isNeeded(claim: Claim, sources: Sources): Promise<Need> {
  const { namespace, name, binding } = claim;
  const podName = binding?.podName ?? "";
  const pod = await sources.pod(namespace, podName === "" ? name : podName);
  // the next pod of the name, which was admitted with the claim, has it once it is scheduled
  const isNext = pod?.annotations[ASSIGNED_CLAIM] === name;
  if (pod !== undefined && isWaitingFor(pod, claim, sources.own)) return true;
  const isItsPod = binding?.podUID ? binding.podUID === pod?.uid || isNext : !hasAnother(pod, name);
  if (pod !== undefined && !pod.ended && isItsPod) return true;
  return await isWanted(claim, pod, sources);
}

/** The pod that has the name was given another claim at its admission. */
function hasAnother(pod: PodState | undefined, claim: string): boolean {
  const given = pod?.annotations[ASSIGNED_CLAIM];
  return given !== undefined && given !== claim;
}

/** By the workload that the claim is an ordinal, an index or a slot of; of what cannot be known nothing is said. */
async function isWanted(claim: Claim, pod: PodState | undefined, sources: Sources): Promise<Need> {
  const { namespace, name, identity, retention } = claim;
  const { apiVersion, kind, ordinal, slot } = identity;
  const isPlace = slot !== undefined || (ordinal !== undefined && name === `${identity.name}-${ordinal}`);
  if (!isPlace) return retention.whenDeleted === "Retain";
  const owner = await sources.workload({ apiVersion, kind, namespace, name: identity.name });
  if (owner === "unknown") return true;
  if (owner === "never admitted") return retention.whenScaled === "Retain";
  const state = owner === undefined ? "deleted" : neededBy(owner, identity);
  const isPlaced = owner !== undefined && state === "needed";
  const isGone = !isPlaced || (await isGivenUp(claim, pod, { workload: owner, sources }));
  if (isGone === "unseen") return isGone;
  if (!isGone) return true;
  return (state === "scaled" ? retention.whenScaled : retention.whenDeleted) === "Retain";
}

/** The place is there, and the template that made it ask Berth does not any more. */
async function isGivenUp(
  claim: Claim,
  pod: PodState | undefined,
  { workload, sources }: { readonly workload: WorkloadState; readonly sources: Sources },
): Promise<boolean | "unseen"> {
  if (claim.identity.slot === undefined && pod === undefined) return false;
  const namespace = await ifAllowed(() => namespaceOf(sources, claim.namespace));
  if (namespace === undefined) return "unseen";
  const template = { workload, namespace, own: sources.own };
  return isEntryDeclined(claim, template) || (pod !== undefined && isDeclined(claim, pod, template));
}

function found(claim: Claim, place: Backend["place"]): Finding {
  const key = claimKey(claim);
  const { addresses, binding } = claim;
  const isUnbound = (binding?.podName ?? "") === "";
  const kind = containerOf(claim, place) === undefined ? "pod" : "container";
  const why = isUnbound
    ? `no ${kind} of it is there`
    : `${describeHolder(claim, place)} is gone or has ended`;
  const where = place === "etcd" ? "host" : "node";
  const next = isDetached(claim)
    ? `Berth lets it go within 60 s; if it does not, look at the log of its webhook, or: berthctl release ${key}`
    : `${where} ${binding?.node ?? ""} has not said that the sandbox is gone; see: berthctl explain claim/${key}`;
  return {
    severity: "pending",
    kind: "unneeded",
    subject: key,
    message: `claim ${key} (${describeOwner(claim, place)}) holds ${addresses.join(", ")}, which nobody needs: ${why}; ${next}`,
  };
}
