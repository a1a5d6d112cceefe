// SPDX-License-Identifier: Apache-2.0
import type { Expectation } from "./expectation.ts";

/** Cases that cannot be run against this plugin -> why. */
export const NOT_APPLICABLE: ReadonlyMap<string, string> = new Map([
  ["G14", "the journal of an agent knows its own node only; there is nothing of another node to free"],
  ["G20", "a note about load, not steps; scale.test.ts does it"],
  [
    "T08",
    "a note about policy: an exhausted range is no error of STATUS, see ipam-plugin/agent/commands/status.ts",
  ],
  ["H05", "writes a file of an old host-local; this plugin keeps no files"],
  ["H17", "writes host-local's own files; ipam-plugin/agent/add/from-ranges.test.ts has the case"],
  ["H19", "writes host-local's own files; ipam-plugin/agent/add/from-ranges.test.ts has the case"],
  ["H21", "writes host-local's own files; ipam-plugin/agent/add/from-ranges.test.ts has the case"],
  ["H23", "writes host-local's own files; ipam-plugin/agent/add/from-ranges.test.ts has the case"],
  ["H25", "writes host-local's own files; ipam-plugin/agent/add/from-ranges.test.ts has the case"],
]);

/** Case/step, counted from 0, where `want` replaces the recorded answer of the reference -> what is expected. */
export const WANTED: ReadonlyMap<string, Expectation> = new Map<string, Expectation>([
  ["P05/0", { rc: 0, ips: ["10.1.2.2/24|10.1.2.1"] }],
  [
    "P49/0",
    {
      rc: 0,
      json: {
        cniVersion: "1.1.0",
        supportedVersions: ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
      },
    },
  ],
  ["A10/0", { rc: 0, ips: ["10.1.2.2/24|10.1.2.1"] }],
  // It is a list now: its second address is one too many for one range set, as in I10.
  ["A16/0", { rc: 1, msg: "failed to allocate all requested IPs: 10.1.2.79" }],
  ["A18/0", { rc: 0, stdout: "" }],
  ["H29/1", { rc: 1, msg: "10.1.2.2 of eth0 is missing in prevResult" }],
  ["H33/0", { rc: 0, stdout: "" }],
  ["R16/0", { rc: 0, ips: ["10.1.2.2/24|10.1.2.1"] }],
  ["R22/0", { rc: 1, code: 7 }],
  ["R26/0", { rc: 1, code: 7, msg: "invalid range set 0: invalid CIDR address: 10.01.2.0/24" }],
  ["R41/0", { rc: 1, code: 7 }],
  ["S21/0", { rc: 1, code: 7 }],
]);

/** Cases whose error text is ours on purpose -> why. Everything else about the answer is compared. */
export const OWN_TEXT: ReadonlyMap<string, string> = new Map([
  ["P41", "the words for broken JSON are those of V8"],
  ["P47", "the words for broken JSON are those of V8"],
  ["P55", "the words for broken JSON are those of V8"],
  ["R28", "the reference names a type of its source; ours names the field of the configuration"],
  ["V10", "the reference converts an empty result; ours says what is not configured"],
  ["H27", "the reference names itself; ours names interface and network too"],
  ["H35", "the reference has the words of Go; ours names the field of the configuration"],
]);
