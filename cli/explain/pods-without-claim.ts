// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { PodState } from "../../allocator/model/cluster-state.ts";
import type { Backend } from "../backend/backend.ts";
import { type SurveyedPod, surveyed } from "./pod-survey.ts";

/** What is made at once is made by then. */
const GRACE_MS = 1_000;

/**
 * Pods that live and were admitted with a claim that is not there: somebody released it. `known`: the claims that there are, and those whose
 * lack is told already. Looked at twice.
 */
export async function podsWithoutClaim(
  pods: readonly SurveyedPod[],
  known: ReadonlySet<string>,
  { world, store, place }: Pick<Backend, "world" | "store" | "place">,
  clock: Clock,
): Promise<readonly Finding[]> {
  const suspects = pods.filter((pod) => isSuspect(pod, known));
  if (suspects.length === 0) return [];
  await clock.sleep(GRACE_MS);
  const findings: Finding[] = [];
  for (const { state } of suspects) {
    const { namespace, name, uid } = state;
    const now = await world.object("Pod", namespace, name);
    if (now?.metadata.uid !== uid || !isSuspect(surveyed(now), known)) continue;
    if ((await store.get("claim", claimOf(state))) === undefined) findings.push(found(state, place));
  }
  return findings;
}

function isSuspect({ state, isServed }: SurveyedPod, known: ReadonlySet<string>): boolean {
  return isServed && (state.annotations[ASSIGNED_CLAIM] ?? "") !== "" && !known.has(claimOf(state));
}

/** namespace/name */
function claimOf({ namespace, annotations }: PodState): string {
  return claimKey({ namespace, name: annotations[ASSIGNED_CLAIM] ?? "" });
}

function found(pod: PodState, place: Backend["place"]): Finding {
  const { namespace, name } = pod;
  const next =
    place === "data"
      ? `delete it with: berthctl delete pod/${namespace}/${name}, and apply it again`
      : "if Berth does not make the claim again, delete the pod, so that it is made anew";
  const message = `pod ${namespace}/${name} was admitted with claim ${claimOf(pod)}, which was released: without it the pod cannot start, and an address that it runs with may be given to another; ${next}`;
  return { severity: "pending", kind: "without-claim", subject: `${namespace}/${name}`, message };
}
