// SPDX-License-Identifier: Apache-2.0
// What a person is told of a claim that he makes or deletes.

import { isRefusal } from "../../allocator/base/errors.ts";
import { ASSIGNED_CLAIM, readRequest } from "../../allocator/manifest/annotations.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { nameOfServing } from "../../allocator/model/claim-workload.ts";
import { type ClusterState, type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { describeIdentity, isFoundByName } from "../../allocator/model/identity.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { warnIgnoredPod } from "./ignored-defaults.ts";

/** A claim that says whom it is for, who finds a claim by its name and not by what it says. */
export function warnUnserved(claim: Claim): string[] {
  const name = nameOfServing(claim.identity);
  if (name === undefined || name === claim.name) return [];
  return [
    `claim ${claimKey(claim)} is for ${describeIdentity(claim.identity)}, and does not serve it: only a claim that is called ${name} does; make it under that name`,
  ];
}

/** In a cluster: which pod of the name gets the addresses. */
export async function warnPodOfName(
  inventory: ClusterState,
  namespace: NamespaceState,
  { name, identity, request }: Claim,
): Promise<string[]> {
  if (!isFoundByName(identity)) return [];
  const pod = await inventory.pod(namespace.name, name);
  if (pod === undefined || pod.ended || pod.node === "") return warnIgnoredPod(namespace, name);
  const kept = request.addresses === undefined ? "what it holds" : request.addresses.join(" and ");
  return [
    `pod ${namespace.name}/${name} is on a node already: if it runs, it keeps the address that it has for as long as it lives, and ${kept} waits for the next pod of that name; delete the pod and create it again`,
  ];
}

/** In a cluster the claim of a pod that is there, and asks for it, is made again. */
export async function warnMadeAgain(
  inventory: ClusterState,
  { key, record: { namespace, name, binding } }: Stored<"claim">,
): Promise<string[]> {
  const pod = await inventory.pod(namespace, binding?.podName || name);
  if (pod === undefined || pod.ended || pod.annotations[ASSIGNED_CLAIM] !== name) return [];
  const request = readRequest(pod.annotations, await namespaceOf(inventory, namespace));
  if (isRefusal(request) || !requestsAddress(request)) return [];
  return [
    `pod ${namespace}/${pod.name} is there and asks for claim ${key}: berth makes it again, with these addresses if nobody else has them; delete the pod to free them`,
  ];
}
