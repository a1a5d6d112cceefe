// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import type { Finding } from "../../allocator/gc/audit.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { Backend } from "../backend/backend.ts";

/** What is made at once is made by then. */
const GRACE_MS = 1_000;

/**
 * Pods that live and were admitted with a claim that is not there: somebody released it. `known`: the claims that there are, and those whose
 * lack is told already. Looked at twice. Undefined: this user may not list pods.
 */
export async function podsWithoutClaim(
  known: ReadonlySet<string>,
  { world, store, place }: Pick<Backend, "world" | "store" | "place">,
  clock: Clock,
): Promise<readonly Finding[] | undefined> {
  try {
    const suspects = (await world.objects("Pod")).filter((pod) => isSuspect(pod, known));
    if (suspects.length === 0) return [];
    await clock.sleep(GRACE_MS);
    const findings: Finding[] = [];
    for (const pod of suspects) {
      const { namespace, name, uid } = pod.metadata;
      const now = await world.object("Pod", namespace, name);
      if (now?.metadata.uid !== uid || !isSuspect(now, known)) continue;
      if ((await store.get("claim", claimOf(pod))) === undefined) findings.push(found(pod, place));
    }
    return findings;
  } catch (error) {
    if (error instanceof BerthError && error.code === "STORE_READ_ONLY") return undefined;
    throw error;
  }
}

function isSuspect(pod: KubeObject, known: ReadonlySet<string>): boolean {
  if ((pod.metadata.annotations[ASSIGNED_CLAIM] ?? "") === "" || isExempt(pod)) return false;
  const isGoing = pod.json.at("metadata").get("deletionTimestamp") !== undefined;
  return !isGoing && !podState(pod).ended && !known.has(claimOf(pod));
}

/** namespace/name */
function claimOf({ metadata: { namespace, annotations } }: KubeObject): string {
  return claimKey({ namespace, name: annotations[ASSIGNED_CLAIM] ?? "" });
}

function found(pod: KubeObject, place: Backend["place"]): Finding {
  const { namespace, name } = pod.metadata;
  const next =
    place === "data"
      ? `delete it with: berthctl delete pod/${namespace}/${name}, and apply it again`
      : "if Berth does not make the claim again, delete the pod, so that it is made anew";
  const message = `pod ${namespace}/${name} was admitted with claim ${claimOf(pod)}, which was released: without it the pod cannot start, and an address that it runs with may be given to another; ${next}`;
  return { severity: "pending", kind: "without-claim", subject: `${namespace}/${name}`, message };
}
