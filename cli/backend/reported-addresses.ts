// SPDX-License-Identifier: Apache-2.0
// Addresses that others report of a pod: kubelet those of its first interface, Multus those of each network.

import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { addressesOn, FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";
import { interfaceTold, unreportedInterfaces } from "./attachment-report.ts";

/** Multus writes it when the pod's networks are attached ("Network Attachment Status Annotation" of the de facto standard). */
const NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status";
const LONGEST = 64 * 1024;

/** Of a claim for several interfaces: of which it is known. */
export function whereOf(claim: Claim, pod: KubeObject): string {
  const reported = reportedAddresses(pod);
  const others = unreportedInterfaces(claim).filter(
    (name) => addressesOn(claim, name)?.every((address) => reported.has(address)) !== true,
  );
  if (others.length === 0) return "";
  const on = interfaceTold(claim);
  return ` on ${on}; whether it has ${others.join(" and ")} is not reported: see ip address in the pod`;
}

export function reportedAddresses(pod: KubeObject): ReadonlySet<Address> {
  const networks = networksIn(pod.metadata.annotations[NETWORK_STATUS] ?? "");
  const ofMultus = networks.flatMap((one) => new Fields(one).list("ips").map(String));
  return new Set([...kubeletsAddresses(pod), ...ofMultus.flatMap((text) => parseAddress(text) ?? [])]);
}

/** Those of the first interface: `status.podIPs`. */
export function kubeletsAddresses({ json }: KubeObject): ReadonlySet<Address> {
  const ips = json.at("status").list("podIPs");
  return new Set(ips.flatMap((one) => parseAddress(new Fields(one).text("ip")) ?? []));
}

/** All that the claim has on the first interface, if the kubelet tells of one of them: it tells of one of each family at most. */
export function confirmedByKubelet(claim: Claim, pod: KubeObject): readonly Address[] {
  const reported = kubeletsAddresses(pod);
  const first = addressesOn(claim, FIRST_INTERFACE) ?? claim.addresses;
  return first.some((address) => reported.has(address)) ? first : [];
}

/** When the pod's sandbox was ready with its network (KEP-3085), or the kubelet took the pod on; milliseconds since 1970. */
export function reportedSince({ json }: KubeObject): number | undefined {
  const status = json.at("status");
  const ready = status
    .list("conditions")
    .map((one) => new Fields(one))
    .find((one) => one.text("type") === "PodReadyToStartContainers" && one.text("status") === "True");
  const at = Date.parse(ready?.text("lastTransitionTime") || status.text("startTime"));
  return Number.isNaN(at) ? undefined : at;
}

function networksIn(text: string): readonly unknown[] {
  if (text === "" || text.length > LONGEST) return [];
  try {
    const networks: unknown = JSON.parse(text);
    return Array.isArray(networks) ? networks : [];
  } catch {
    return [];
  }
}
