// SPDX-License-Identifier: Apache-2.0

import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { Claim, Identity } from "../../allocator/model/claim.ts";
import type { PodState, WorkloadState } from "../../allocator/model/cluster-state.ts";
import type { Cluster } from "./cluster.ts";

/** Whether the owner of the identity wants it, as the cluster is at this moment. */
export type Want = "wanted" | "scaled" | "gone";

/** By what is there, and not by what the code under test says of it. */
export function wantOf(cluster: Cluster, claim: Claim): Want {
  const { namespace, name, identity, binding } = claim;
  if (!isOfWorkload(claim)) {
    const pod = cluster.pod(namespace, binding?.podName || name);
    return pod === undefined || pod.ended || isNamesakeOnly(pod, claim) ? "gone" : "wanted";
  }
  const { apiVersion, kind } = identity;
  const workload = cluster.workload({ apiVersion, kind, namespace, name: identity.name });
  return typeof workload !== "object" ? "gone" : wantedBy(workload, identity);
}

/**
 * The pod was given another claim, or none and asks for none: this one is only called like it. One whose runtime tells no UID may
 * be any pod of the name, but none that was given another claim.
 */
export function isNamesakeOnly({ uid, annotations }: PodState, { name, binding }: Claim): boolean {
  if (uid === binding?.podUID) return false;
  const reported = annotations[ASSIGNED_CLAIM];
  if (reported !== undefined) return reported !== name;
  return binding?.podUID !== "" && !Object.keys(annotations).some((key) => ASKING.has(key));
}

const ASKING: ReadonlySet<string> = new Set(["berth.dev/ips", "berth.dev/pools", "berth.dev/sticky"]);

function wantedBy({ uid, start, replicas, slots }: WorkloadState, { ordinal = 0, ...of }: Identity): Want {
  if (of.slot !== undefined) return of.slot < (slots ?? Number.POSITIVE_INFINITY) ? "wanted" : "gone";
  if (ordinal >= start && ordinal < start + replicas) return "wanted";
  return of.uid === undefined || of.uid === uid ? "scaled" : "gone";
}

/** It is that of an ordinal or a slot of a workload that Berth reads. */
export function isOfWorkload({ name, identity }: Claim): boolean {
  const { kind, apiVersion, ordinal, slot } = identity;
  if (apiVersion !== "apps/v1") return false;
  if (kind === "Deployment") return slot !== undefined;
  return kind === "StatefulSet" && name === `${identity.name}-${ordinal}`;
}

/** A pod has had it. */
export function isUsed({ binding, retained, status }: Claim): boolean {
  return (binding?.node ?? "") !== "" || retained !== undefined || status.attachment !== undefined;
}
