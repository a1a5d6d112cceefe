// SPDX-License-Identifier: Apache-2.0
// Two namespaces and their pools.
import { namespace, pool } from "../support/manifests.ts";
import { networkOf, Runtime } from "../support/runtime.ts";
import type { ChildStack } from "../support/stack.ts";

export const MANIFESTS = [
  namespace("shop"),
  namespace("lab", { annotations: { "berth.dev/pools": "lab" } }),
  pool(
    "db",
    [{ cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.199", gateway: "10.20.0.100" }, "fd00:20::/64"],
    { reserved: ["10.20.0.50-10.20.0.59"], cooldown: "0s" },
  ),
  pool("web", [{ cidr: "10.30.0.0/24", gateway: "10.30.0.1" }], { cooldown: "0s" }),
  pool("lab", ["10.40.0.0/28"], { cooldown: "0s" }),
  pool("vlan10", ["10.70.0.0/24"], { cooldown: "0s", networks: ["lab/vlan10"], priority: 9 }),
  pool("vlan20", ["10.80.0.0/24"], { cooldown: "0s", networks: ["vlan20"], priority: 9 }),
  pool("duo", ["10.60.0.0/24", "fd00:60::/64"], { cooldown: "0s" }),
];

/** Calls as a runtime makes them whose network has this IPAM configuration. */
export function runtimeOn({ socket }: ChildStack, ipam: Readonly<Record<string, unknown>>): Runtime {
  return new Runtime({ socket, network: networkOf(ipam) });
}
