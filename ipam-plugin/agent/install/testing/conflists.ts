// SPDX-License-Identifier: Apache-2.0

/** A list of plugins for the network, whose first one asks that plugin for its addresses. */
export function conflistOf(network: string, ipam = "berth"): string {
  const plugins = [{ type: "bridge", ipam: { type: ipam } }, { type: "portmap" }];
  return JSON.stringify({ cniVersion: "1.0.0", name: network, plugins });
}
