// SPDX-License-Identifier: Apache-2.0
// What the tests of the tool apply to a stack, and what it says where none runs.
import { poolObject, workload } from "../support/objects.ts";
import { berthctl } from "./stack.ts";

export const IPS = { annotations: { "berth.dev/ips": "10.20.0.51/fd00:20::51;10.20.0.52/fd00:20::52" } };
export const POOL = poolObject("db", {
  ranges: [
    { cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.199", gateway: "10.20.0.254" },
    { cidr: "fd00:20::/64" },
  ],
  cooldown: "1h",
});
export const SET = workload("StatefulSet", "mysql", { replicas: 2, ...IPS });
/** The words of a command that needs one. */
export const NO_STACK = (dataDir: string) =>
  `Error: no berth stack runs on ${dataDir}; start one with: berthctl up --data ${dataDir}\n`;

export const applyTo = (dataDir: string, object: unknown) =>
  berthctl(dataDir, ["apply", "-f", "-"], JSON.stringify(object));

export const applyAtOnce = (dataDir: string, object: unknown) =>
  berthctl(dataDir, ["apply", "--wait", "0", "-f", "-"], JSON.stringify(object));
