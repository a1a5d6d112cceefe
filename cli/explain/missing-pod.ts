// SPDX-License-Identifier: Apache-2.0
import { type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";

type Known = Pick<Backend, "place" | "store" | "claims">;

/** Of a pod that is not there, in words. Nobody needs to apply pods to a data folder, and etcd has none: their claims are there all the same. */
export async function missingPod(backend: Known, pod: ClaimKey): Promise<string> {
  const list = backend.place === "cluster" ? "kubectl get pods -A" : "berthctl get pods -A";
  const claim = await claimWords(backend, pod);
  return `there is no pod ${claimKey(pod)}; see what there is with: ${list}${claim}`;
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
