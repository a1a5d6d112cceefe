// SPDX-License-Identifier: Apache-2.0

import type { Finding } from "../../allocator/gc/finding.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import type { PodState, WorkloadAnswer } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Backend, Objects } from "../backend/backend.ts";
import { containerOf, describeHolder, describeOwner } from "../backend/container-words.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import type { SurveyedPod } from "./pod-survey.ts";

/** Where pods and workloads are looked up. */
type Sources = Pick<Objects, "pod" | "workload">;

/**
 * Claims that hold addresses and that nobody needs: no pod that lives, no place that a living workload wants, no retention,
 * no person. A rule of its own, simpler than the one by which they are released: it is to find what that one
 * forgets. Undefined: workloads may not be read by this user.
 */
export async function unneeded(
  {
    claims,
    pods,
    now,
  }: {
    readonly claims: readonly Stored<"claim">[];
    readonly pods: readonly SurveyedPod[];
    readonly now: number;
  },
  backend: Backend,
): Promise<readonly Finding[] | undefined> {
  const suspects = claims.filter((claim) => isCandidate(claim, now));
  if (suspects.length === 0) return [];
  return await ifAllowed(async () => {
    const first = await unneededOf(suspects, listedIn(pods, backend.world));
    // one by one, as they are now: what came in between is seen
    return (await unneededOf(await again(first, backend), backend.world)).map(({ record }) =>
      found(record, backend.place),
    );
  });
}

/** Nothing says that it is to be kept, and it does not wait for a pod that was admitted just now. */
function isCandidate({ record, createdAt }: Stored<"claim">, now: number): boolean {
  const { handMade, nonce, releasing, deleting, retained, admittedAt = 0, binding } = record;
  if (handMade === true || nonce === "" || releasing === true || deleting === true) return false;
  if (retained !== undefined) return false;
  return now - Math.max(createdAt, admittedAt, binding?.since ?? 0) >= HOLD_TIMEOUT_MS;
}

function listedIn(survey: readonly SurveyedPod[], world: Sources): Sources {
  const pods = new Map(survey.map(({ state }) => [claimKey(state), state]));
  const workloads = new Map<string, Promise<WorkloadAnswer>>();
  return {
    pod: async (namespace, name) => pods.get(claimKey({ namespace, name })),
    workload: (ref) => {
      const key = `${ref.apiVersion} ${ref.kind} ${claimKey(ref)}`;
      const known = workloads.get(key) ?? world.workload(ref);
      workloads.set(key, known);
      return known;
    },
  };
}

async function unneededOf(claims: readonly Stored<"claim">[], sources: Sources): Promise<Stored<"claim">[]> {
  const left: Stored<"claim">[] = [];
  for (const claim of claims) if (!(await isNeeded(claim.record, sources))) left.push(claim);
  return left;
}

async function again(claims: readonly Stored<"claim">[], { store }: Backend): Promise<Stored<"claim">[]> {
  const unchanged: Stored<"claim">[] = [];
  for (const claim of claims) {
    const now = await store.get("claim", claim.key);
    if (now?.uid === claim.uid && now.revision === claim.revision) unchanged.push(now);
  }
  return unchanged;
}

async function isNeeded(claim: Claim, sources: Sources): Promise<boolean> {
  const { namespace, name, binding } = claim;
  const podName = binding?.podName ?? "";
  const pod = await sources.pod(namespace, podName === "" ? name : podName);
  // the next pod of the name, which was admitted with the claim, has it once it is scheduled
  const isNext = pod?.annotations[ASSIGNED_CLAIM] === name;
  const isItsPod = binding?.podUID ? binding.podUID === pod?.uid || isNext : !hasAnother(pod, name);
  if (pod !== undefined && !pod.ended && isItsPod) return true;
  return await isWanted(claim, sources);
}

/** The pod that has the name was given another claim at its admission. */
function hasAnother(pod: PodState | undefined, claim: string): boolean {
  const given = pod?.annotations[ASSIGNED_CLAIM];
  return given !== undefined && given !== claim;
}

/** By the workload that the claim is an ordinal, an index or a slot of; of what cannot be known nothing is said. */
async function isWanted({ namespace, name, identity, retention }: Claim, sources: Sources): Promise<boolean> {
  const { apiVersion, kind, ordinal, slot } = identity;
  const isPlace = slot !== undefined || (ordinal !== undefined && name === `${identity.name}-${ordinal}`);
  if (!isPlace) return retention.whenDeleted === "Retain";
  const owner = await sources.workload({ apiVersion, kind, namespace, name: identity.name });
  if (owner === "unknown") return true;
  if (owner === "never admitted") return retention.whenScaled === "Retain";
  const state = owner === undefined ? "deleted" : neededBy(owner, identity);
  if (state === "needed") return true;
  return (state === "scaled" ? retention.whenScaled : retention.whenDeleted) === "Retain";
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
