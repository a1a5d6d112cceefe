// SPDX-License-Identifier: Apache-2.0
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import { ordinalInName } from "../../allocator/model/ordinals.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";

type Known = Pick<Backend, "place" | "store" | "claims"> & { readonly world: Pick<ClusterState, "workload"> };

/** Of a pod that is not there, in words. Nobody needs to apply pods to a data folder, and etcd has none: their claims are there all the same. */
export async function missingPod(backend: Known, pod: ClaimKey): Promise<string> {
  const list = backend.place === "cluster" ? "kubectl get pods -A" : "berthctl get pods -A";
  const claim = await claimWords(backend, pod);
  const set = backend.place === "cluster" ? await setWords(backend, pod) : "";
  return `there is no pod ${claimKey(pod)}${set}; see what there is with: ${list}${claim}`;
}

/** Why a pod that a StatefulSet wants is not made, its events say. */
async function setWords({ world }: Known, { namespace, name }: ClaimKey): Promise<string> {
  const { workload: set, ordinal } = ordinalInName(name) ?? {};
  if (set === undefined || ordinal === undefined) return "";
  const ref = { apiVersion: "apps/v1", kind: "StatefulSet", namespace, name: set };
  const found = await ifAllowed(() => world.workload(ref));
  if (typeof found !== "object" || neededBy(found, { ordinal }) !== "needed") return "";
  return `, which StatefulSet ${namespace}/${set} wants: why it has none yet, kubectl describe statefulset ${set} -n ${namespace} says`;
}

async function claimWords({ place, store, claims }: Known, { namespace, name }: ClaimKey): Promise<string> {
  const key = claimKey({ namespace, name });
  // who may not read claims still hears that there is no such pod
  if ((await ifAllowed(() => store.get("claim", key))) !== undefined)
    return `; there is a claim of that name: berthctl explain claim/${key}`;
  if (place === "cluster") return "";
  const own = (await claims(namespace)).find(
    ({ record }) => record.namespace === namespace && record.binding?.podName === name,
  );
  return own === undefined ? "" : `; a claim is bound to it: berthctl explain claim/${own.key}`;
}
