// SPDX-License-Identifier: Apache-2.0
// What uses addresses in a cluster. Agents write only what nobody else does (ADR 0042): of a pod's first interface its
// kubelet tells, in the status of the pod.

import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey, isBound } from "../../allocator/model/claim.ts";
import { type AttachmentUse, KUBELETS_INTERFACE, usesOf } from "./attachment-report.ts";
import type { Objects } from "./backend.ts";
import { ifAllowed } from "./if-allowed.ts";
import { kubeletsAddresses, reportedSince } from "./reported-addresses.ts";

type World = Pick<Objects, "object" | "each">;

/** So many pods are read one by one; more of them are cheaper as one list. */
const ONE_BY_ONE = 16;

/** As agents say, and where they say nothing, as the pods do, if this user may read them. */
export async function usesInCluster(
  claims: Iterable<Claim>,
  world: World,
): Promise<readonly AttachmentUse[]> {
  const all = [...claims];
  const untold = all.filter(isUntold);
  const ofPods = await ifAllowed(() => usesOfPods(untold, world), []);
  return [...usesOf(all), ...ofPods];
}

/** It is bound to a pod, and its status says nothing of a sandbox of that pod. */
function isUntold(claim: Claim): boolean {
  const { binding, status } = claim;
  if (!isBound(claim) || status.attachment?.detached === false) return false;
  return status.attachment?.podUID !== binding?.podUID;
}

async function usesOfPods(claims: readonly Claim[], world: World): Promise<AttachmentUse[]> {
  const uses: AttachmentUse[] = [];
  const byPod = Map.groupBy(claims, ({ namespace, binding }) => `${namespace}/${binding?.podName}`);
  const look = (pod: KubeObject | undefined) => {
    const { namespace, name } = pod?.metadata ?? {};
    for (const claim of byPod.get(`${namespace}/${name}`) ?? []) {
      const use = pod && useOf(claim, pod);
      if (use !== undefined) uses.push(use);
    }
  };
  if (claims.length > ONE_BY_ONE) for await (const pod of world.each("Pod")) look(pod);
  else
    for (const { namespace, binding } of claims)
      look(await world.object("Pod", namespace, binding?.podName ?? ""));
  return uses;
}

function useOf(claim: Claim, pod: KubeObject): AttachmentUse | undefined {
  const { namespace, name, uid } = pod.metadata;
  const reported = kubeletsAddresses(pod);
  const addresses = claim.addresses.filter((address) => reported.has(address));
  if (uid !== claim.binding?.podUID || podState(pod).ended || addresses.length === 0) return undefined;
  return {
    scope: { network: "", dataDir: "" },
    containerID: "",
    interface: KUBELETS_INTERFACE,
    source: "claim",
    netns: "",
    pod: { namespace, name, uid },
    claim: claimKey(claim),
    attachedAt: reportedSince(pod) ?? claim.binding.since,
    result: { addresses: addresses.map((address) => ({ address })) },
    node: claim.binding.node,
  };
}
