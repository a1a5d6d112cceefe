// SPDX-License-Identifier: Apache-2.0
// Which interfaces of a pod are served without a claim, by what its annotations and its claims say.

import { isRefusal } from "../../../allocator/base/errors.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  EXEMPT_NAMESPACE,
  readRequest,
} from "../../../allocator/manifest/annotations.ts";
import type { NetworkAttachment } from "../../../allocator/manifest/network-attachments.ts";
import { requestsAddressOn } from "../../../allocator/model/address-request.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { addressesOn, FIRST_INTERFACE, parseAddresses } from "../../../allocator/model/interfaces.ts";
import { isOnNetwork } from "../../../allocator/pool/pool-networks.ts";
import type { Informers, ObservedPod } from "../../cluster-state/informers.ts";
import type { WaitingPod } from "./waiting-pods.ts";

interface Source {
  readonly cache: Pick<RecordCache, "poolOf" | "claimsOfPod">;
  readonly watches: {
    readonly nodes: Pick<Informers["nodes"], "get">;
    readonly namespaces: Pick<Informers["namespaces"], "get">;
  };
}

/** Which may have an address each. Those of an ended pod count as well: its sandbox is there until its DEL. */
export function interfacesOf({ onHostNetwork, networks = 0 }: ObservedPod): number {
  return onHostNetwork === true ? 0 : 1 + networks;
}

/** Whether the pod's first interface is served as that of a pod that asks for nothing. */
export function needsAddress({ cache }: Pick<Source, "cache">, pod: ObservedPod): boolean {
  return isServed(pod) && asksNothing(pod) && !cache.claimsOfPod(pod.namespace, pod.name).some(hasFirst);
}

/** What a pod that has no address needs without a claim; undefined: nothing, or it cannot be said. */
export function waitingFor(source: Source, pod: ObservedPod): WaitingPod | undefined {
  if (!isServed(pod)) return undefined;
  const asks = needsAddress(source, pod);
  const further = furtherOf(source, pod, asks);
  if (!asks && further.length === 0) return undefined;
  const { nodes, namespaces } = source.watches;
  const [node, namespace] = [nodes.get(pod.node), namespaces.get(pod.namespace)];
  if (node === undefined || namespace === undefined) return undefined;
  const labels = { namespaceLabels: namespace.labels, podLabels: pod.labels, nodeLabels: node.labels };
  const first = (pod.attachments ?? []).find((one) => one.interface === FIRST_INTERFACE);
  const networks = first && { networks: namesOf(first) };
  return { input: { namespace: namespace.name, ...labels, ...networks }, asksNothing: asks, further };
}

/** By Berth, perhaps: it is on a node, has not ended, and is not on its host's network. */
export function isServed({ node, ended, onHostNetwork }: ObservedPod): boolean {
  return node !== "" && !ended && onHostNetwork !== true;
}

/** As its agent sees it: a pod that asks for an address is served by a claim or not at all, but for kube-system's. */
function asksNothing({ annotations, namespace }: ObservedPod): boolean {
  if (namespace === EXEMPT_NAMESPACE) return true;
  if (annotations[ASSIGNED_CLAIM] !== undefined) return isOfFurther(annotations[ASSIGNED_ADDRESSES] ?? "");
  const asked = readRequest(annotations);
  return !isRefusal(asked) && !requestsAddressOn(asked, FIRST_INTERFACE);
}

/** Whether a pod was told addresses of further interfaces alone: its first one is served as that of a pod that asks for nothing. */
function isOfFurther(text: string): boolean {
  const { interfaces } = parseAddresses(text.split(","));
  return interfaces !== undefined && !Object.hasOwn(interfaces, FIRST_INTERFACE);
}

/** Whether a claim has the pod's first interface: of one that names others alone, blocks serve the first. */
function hasFirst({ record }: { readonly record: Claim }): boolean {
  return addressesOn(record, FIRST_INTERFACE)?.length !== 0;
}

/** Names of the networks of its further interfaces. Of a pod that asks and has no claim yet, nobody knows which of them that will serve. */
function furtherOf(
  { cache }: Source,
  { namespace, name, attachments = [] }: ObservedPod,
  asks: boolean,
): readonly (readonly string[])[] {
  const others = attachments.filter((one) => one.interface !== FIRST_INTERFACE);
  if (others.length === 0) return [];
  const claims = cache.claimsOfPod(namespace, name);
  if (!asks && claims.length === 0) return [];
  return others.flatMap((one) => {
    const names = namesOf(one);
    return claims.some(({ record }) => mayHave(cache, record, one, names)) ? [] : [names];
  });
}

/** A claim that names no interface has its addresses where their pools are for. */
function mayHave(
  cache: Pick<RecordCache, "poolOf">,
  claim: Claim,
  { interface: own }: NetworkAttachment,
  names: readonly string[],
): boolean {
  const named = addressesOn(claim, own);
  if (named !== undefined) return named.length > 0;
  return claim.addresses.some((address) => {
    const pool = cache.poolOf(address);
    return pool?.spec.networks !== undefined && isOnNetwork(pool, names);
  });
}

/** Of the definition, and of the network that it defines, which mostly has its name. */
function namesOf({ network }: NetworkAttachment): readonly string[] {
  return [network, network.slice(network.indexOf("/") + 1)];
}
