// SPDX-License-Identifier: Apache-2.0
// Addresses that others report of a pod: kubelet those of its first interface, Multus those of each network.

import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { addressesOn } from "../../allocator/model/interfaces.ts";
import { unreportedInterfaces } from "../backend/attachment-report.ts";

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
  const on = claim.status.attachment?.interface ?? "";
  return ` on ${on}; whether it has ${others.join(" and ")} is not reported: see ip address in the pod`;
}

export function reportedAddresses({ json, metadata }: KubeObject): ReadonlySet<Address> {
  const ofKubelet = json
    .at("status")
    .list("podIPs")
    .map((one) => new Fields(one).text("ip"));
  const ofMultus = networksIn(metadata.annotations[NETWORK_STATUS] ?? "").flatMap((one) =>
    new Fields(one).list("ips").map(String),
  );
  return new Set([...ofKubelet, ...ofMultus].flatMap((text) => parseAddress(text) ?? []));
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
