// SPDX-License-Identifier: Apache-2.0
// Addresses that others report of a pod: kubelet those of its first interface, Multus those of each network.

import { type Address, familyOf, parseAddress } from "../../allocator/ip/address.ts";
import { conditionOf, Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { addressesOn, FIRST_INTERFACE } from "../../allocator/model/interfaces.ts";
import { reportedInterface, unreportedInterfaces } from "./attachment-report.ts";

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
  const on = reportedInterface(claim);
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

/**
 * What the claim has on the first interface, of each family of which the kubelet tells one address: it tells no more. While it says
 * that the pod has no sandbox, the addresses are those of the last one.
 */
export function confirmedByKubelet(claim: Claim, pod: KubeObject): readonly Address[] {
  if (sandboxCondition(pod)?.text("status") === "False") return [];
  const reported = kubeletsAddresses(pod);
  const first = addressesOn(claim, FIRST_INTERFACE) ?? claim.addresses;
  const families = new Set(first.filter((address) => reported.has(address)).map(familyOf));
  return first.filter((address) => families.has(familyOf(address)));
}

/** When the pod's sandbox was ready with its network, or the kubelet took the pod on; milliseconds since 1970. */
export function reportedSince(pod: KubeObject): number | undefined {
  const condition = sandboxCondition(pod);
  const ready = condition?.text("status") === "True" ? condition.text("lastTransitionTime") : "";
  const at = Date.parse(ready || pod.json.at("status").text("startTime"));
  return Number.isNaN(at) ? undefined : at;
}

/** Whether the pod has a sandbox with its network (KEP-3085); undefined: its kubelet does not say. */
function sandboxCondition(pod: KubeObject): Fields | undefined {
  return conditionOf(pod, "PodReadyToStartContainers");
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
