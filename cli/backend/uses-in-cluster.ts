// SPDX-License-Identifier: Apache-2.0
// What uses addresses in a cluster. Agents write only what nobody else does (ADR 0042): of a pod's first interface its
// kubelet tells, in the status of the pod.

import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey, isBound } from "../../allocator/model/claim.ts";
import { LINK_PREFIX } from "../../allocator/model/interface-macs.ts";
import { addressesOn, FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";
import { type AttachmentUse, usesOf } from "./attachment-report.ts";
import type { Objects } from "./backend.ts";
import { ifAllowed, isForbidden } from "./if-allowed.ts";
import { confirmedByKubelet, reportedSince } from "./reported-addresses.ts";

type World = Pick<Objects, "object" | "each">;

/** So many pods are read one by one; more of them are cheaper as one list. */
const ONE_BY_ONE = 16;

/** As agents say, and where they say nothing, as the pods do that this user may read. */
export async function usesInCluster(
  claims: Iterable<Claim>,
  world: World,
): Promise<readonly AttachmentUse[]> {
  const all = [...claims];
  const byPod = Map.groupBy(
    all.filter(isUntold),
    ({ namespace, binding }) => `${namespace}/${binding?.podName}`,
  );
  const uses = [...usesOf(all)];
  for await (const pod of podsOf([...byPod.keys()], world)) {
    const { namespace, name } = pod.metadata;
    for (const claim of byPod.get(`${namespace}/${name}`) ?? []) uses.push(...useOf(claim, pod));
  }
  return uses;
}

/** It is bound to a pod, and its status says nothing of the interface that the kubelet tells of. */
function isUntold(claim: Claim): boolean {
  const { binding, status } = claim;
  if (!isBound(claim) || isDetached(claim)) return false;
  if (status.attachment?.podUID !== binding?.podUID) return status.attachment?.detached !== false;
  return status.attachment?.interface !== FIRST_INTERFACE;
}

/** These at least, each once. */
async function* podsOf(keys: readonly string[], world: World): AsyncGenerator<KubeObject, void, void> {
  if (keys.length <= ONE_BY_ONE) {
    for (const key of keys) {
      const [namespace = "", name = ""] = key.split("/");
      const pod = await ifAllowed(() => world.object("Pod", namespace, name));
      if (pod !== undefined) yield pod;
    }
    return;
  }
  const namespaces = [...new Set(keys.map((key) => key.split("/")[0] ?? ""))];
  if (namespaces.length > ONE_BY_ONE && (yield* listed(world))) return;
  for (const namespace of namespaces) yield* listed(world, namespace);
}

/** False: this user may not list them there. */
async function* listed(world: World, namespace?: string): AsyncGenerator<KubeObject, boolean, void> {
  try {
    yield* world.each("Pod", namespace);
    return true;
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

function useOf(claim: Claim, pod: KubeObject): readonly AttachmentUse[] {
  const { namespace, name, uid } = pod.metadata;
  const own = confirmedByKubelet(claim, pod);
  if (uid !== claim.binding?.podUID || podState(pod).ended || own.length === 0) return [];
  const macs = addressesOn(claim, `${LINK_PREFIX}${FIRST_INTERFACE}`) ?? [];
  return [
    {
      scope: { network: "", dataDir: "" },
      containerID: "",
      interface: FIRST_INTERFACE,
      source: "claim",
      netns: "",
      pod: { namespace, name, uid },
      claim: claimKey(claim),
      attachedAt: reportedSince(pod) ?? claim.binding.since,
      result: { addresses: [...own, ...macs].map((address) => ({ address })) },
      node: claim.binding.node,
    },
  ];
}
