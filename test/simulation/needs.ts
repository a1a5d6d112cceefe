// SPDX-License-Identifier: Apache-2.0
// What must be true when everybody has been well for a while: rule 2 of ADR 0008, seen from what is there.

import { isRefusal } from "../../allocator/base/errors.ts";
import { admissionAnswerOf } from "../../allocator/demand/admitted-pod.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Node } from "./node.ts";
import type { Pod } from "./pod.ts";
import { isNamesakeOnly, isOfWorkload, isUsed, wantOf } from "./wants.ts";
import type { World } from "./world.ts";

/** Whether every address is held for somebody who needs it, and nobody waits for what somebody has who has ended. */
export function unfairness(world: World): string | undefined {
  for (const stored of world.records.list("claim")) {
    if (!isNeeded(world, stored)) return `claim ${stored.key} is held, and nobody needs it`;
  }
  for (const { key, record } of world.records.list("reservation")) {
    const claim = world.records.get("claim", claimKey(record.claim))?.record;
    if (record.releasedAt === undefined && claim?.addresses.includes(record.address) !== true)
      return `address ${key} is held for ${record.claim.name}, which does not have it`;
  }
  for (const node of world.nodes) {
    for (const pod of node.pods.values()) {
      const words = node.on && waitsInVain(world, node, pod);
      if (words) return words;
    }
  }
  return undefined;
}

/** By a pod that lives, a place of a workload, a sandbox, a person, or a retention. */
function isNeeded(world: World, { record: claim }: Stored<"claim">): boolean {
  if (claim.releasing === true) return false;
  if (claim.handMade === true || !isReserved(claim)) return true;
  if (claim.retained !== undefined && isUsed(claim)) return true;
  if (isBoundToLiving(world, claim) || isTold(world, claim)) return true;
  if (claim.addresses.some((address) => isInUse(world, address))) return true;
  return wantOf(world.cluster, claim) === "wanted" && claim.identity.kind !== "Pod";
}

/** A pod that is there and has not ended was told that it has it. */
function isTold({ cluster }: World, { name, binding }: Claim): boolean {
  return cluster.all("Pod").some(({ metadata }) => {
    const reported = admissionAnswerOf(metadata.annotations);
    const its = reported?.claim === name && reported.token === (binding?.token ?? "");
    return its && cluster.pod(metadata.namespace, metadata.name)?.ended === false;
  });
}

/** It is bound to a pod that is there and has not ended. One that is bound to nobody is for who was told that he has it. */
function isBoundToLiving({ cluster }: World, claim: Claim): boolean {
  const { namespace, binding } = claim;
  const pod = binding && cluster.pod(namespace, binding.podName);
  if (pod === undefined || pod.ended || isNamesakeOnly(pod, claim)) return false;
  return binding?.podUID === "" || binding?.podUID === pod.uid;
}

function isInUse({ nodes }: World, address: string): boolean {
  return nodes.some(({ sandboxes }) =>
    sandboxes.some(({ phase, addresses }) => phase !== "down" && addresses.some((one) => one === address)),
  );
}

/**
 * Its own claim is bound to nobody, or to a pod that is not there any more or has ended, and no sandbox has its addresses,
 * nor another claim.
 */
function waitsInVain(world: World, node: Node, pod: Pod): string | undefined {
  const there = world.cluster.pod(pod.namespace, pod.name);
  const reported = admissionAnswerOf(pod.annotations);
  if (there?.uid !== pod.uid || there.ended || reported === undefined) return undefined;
  if (node.currentOf(pod)?.phase === "up") return undefined;
  const claim = world.records.get(
    "claim",
    claimKey({ namespace: pod.namespace, name: reported.claim }),
  )?.record;
  if (claim === undefined || claim.binding?.podName === "" || isBoundToLiving(world, claim)) return undefined;
  // a person made one of that name when the pod's own was given back under it: it is for whoever is called so
  if (claim.handMade === true && claim.name !== pod.name) return undefined;
  if (isKeptFromStranger(world, pod, claim) || isBrokenOff(world, pod, claim)) return undefined;
  if (isGivenBack(world, pod, claim)) return undefined;
  if (reported.addresses.some((address) => isInUse(world, address) || !isFor(world, address, claim)))
    return undefined;
  if (claim.binding === undefined)
    return `pod ${pod.name}/${pod.uid} waits for claim ${claim.name}, which is bound to nobody`;
  const { podName, podUID } = claim.binding;
  return `pod ${pod.name}/${pod.uid} waits for claim ${claim.name}, which ${podName}/${podUID} had, who is gone`;
}

/**
 * It is a workload's, which wants it or has said that it is retained, and has other addresses than this pod was told, which is not the workload's own. Both
 * cannot have what they were told under one name: the pod is refused in words until somebody gives it or the claim up.
 */
function isKeptFromStranger(
  { cluster }: World,
  { namespace, name, annotations }: Pod,
  claim: Claim,
): boolean {
  if (!isOfWorkload(claim) || !staysWithWorkload(cluster, claim)) return false;
  const reported = admissionAnswerOf(annotations)?.addresses ?? [];
  if (reported.toSorted().join() === claim.addresses.toSorted().join()) return false;
  const { kind, name: ownerName } = claim.identity;
  const workload = cluster.find(kind, namespace, ownerName);
  const owner = objectIn(cluster.find("Pod", namespace, name))?.metadata.owner;
  return owner?.uid !== objectIn(workload)?.metadata.uid;
}

/**
 * Its creation was broken off before what a copy that was behind had told it was compared with its claim, and its client knows that. It asks
 * for nothing itself, so nothing gives it what it was told: it is refused in words until it is created again.
 */
function isBrokenOff({ clients }: World, { uid, annotations }: Pod, claim: Claim): boolean {
  const request = readRequest(annotations);
  if (!clients.brokenOff.has(uid) || isRefusal(request) || requestsAddress(request)) return false;
  const reported = admissionAnswerOf(annotations)?.addresses ?? [];
  return reported.toSorted().join() !== claim.addresses.toSorted().join();
}

/**
 * A person gave its claim back, and what has the name now was made for another pod, with another token: it is refused in words until it is
 * created again.
 */
function isGivenBack({ clients }: World, { uid, annotations }: Pod, { binding }: Claim): boolean {
  const { token = "" } = admissionAnswerOf(annotations) ?? {};
  return token !== "" && clients.givenBack.has(uid) && binding?.token !== token;
}

function staysWithWorkload(cluster: World["cluster"], claim: Claim): boolean {
  const { whenScaled, whenDeleted } = claim.retention;
  const want = wantOf(cluster, claim);
  return want === "wanted" || (want === "scaled" ? whenScaled : whenDeleted) === "Retain";
}

function objectIn(found: KubeObject | "deleted" | undefined): KubeObject | undefined {
  return found === "deleted" ? undefined : found;
}

function isFor({ records }: World, address: Address, { namespace, name }: Claim): boolean {
  const holder = records.get("reservation", address)?.record.claim;
  return holder !== undefined && claimKey(holder) === claimKey({ namespace, name });
}
