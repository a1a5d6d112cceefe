// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { parseCidr } from "../../allocator/ip/address.ts";

/** Where Cilium's agent looks if a Node's spec has nothing, in its spelling of today and that of before 1.12. */
export const CILIUM_CIDR_KEYS = {
  IPv4: ["network.cilium.io/ipv4-pod-cidr", "io.cilium.network.ipv4-pod-cidr"],
  IPv6: ["network.cilium.io/ipv6-pod-cidr", "io.cilium.network.ipv6-pod-cidr"],
} as const;

/** What they say, one of each family. */
export function annotatedCidrs(annotations: Labels): readonly string[] {
  return Object.values(CILIUM_CIDR_KEYS).flatMap((keys) => {
    const said = keys.flatMap((key) => parseCidr(annotations[key] ?? "")?.text ?? []);
    return said.slice(0, 1);
  });
}
