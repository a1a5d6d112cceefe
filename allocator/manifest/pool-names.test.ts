// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { readRequest } from "./annotations.ts";

const OVN = "ovn.kubernetes.io/ip_pool";
const HYBRID = "networking.alibaba.com/ip-pool";
const CALICO = "cni.projectcalico.org";

describe("an address or a range in the place of another system's pool", () => {
  const range = "is a range of addresses, and no name of a pool; write";
  const each = "each address, with commas between them, or";
  for (const [key, value, words] of [
    [
      OVN,
      "10.20.0.70-10.20.0.72",
      `"10.20.0.70-10.20.0.72" ${range} ${each} "10.20.0.70-10.20.0.72" into berth.dev/ips`,
    ],
    [
      OVN,
      "10.20.0.70..10.20.0.72",
      `"10.20.0.70..10.20.0.72" ${range} ${each} "10.20.0.70-10.20.0.72" into berth.dev/ips`,
    ],
    [OVN, "fd00::1 - fd00::5", `"fd00::1 - fd00::5" ${range} ${each} "fd00::1-fd00::5" into berth.dev/ips`],
    [
      OVN,
      "10.20.0.70/24",
      '"10.20.0.70/24" is an address with a prefix, and no name of a pool; write "10.20.0.70"',
    ],
    [OVN, "010.20.0.70", '"010.20.0.70" is no IP address and no name of a pool'],
    [
      OVN,
      "10.20.0.70,10.20.0.72-10.20.0.75",
      'entry 2, "10.20.0.72-10.20.0.75", is a range, which this list does not have; write each address, or the list into berth.dev/ips, which takes ranges',
    ],
    [
      HYBRID,
      "10.20.0.70-10.20.0.72",
      'entry 1, "10.20.0.70-10.20.0.72", is a range, which this list does not have; write each address, or the list into berth.dev/ips, which takes ranges',
    ],
    [
      "ovn.kubernetes.io/logical_switch",
      "10.20.0.70-72",
      `"10.20.0.70-72" ${range} "10.20.0.70-10.20.0.72" into berth.dev/ips`,
    ],
    [
      "ipam.antrea.io/ippools",
      "db,10.20.0.70",
      '"10.20.0.70" is an address, and no name of a pool; write "10.20.0.70" into berth.dev/ips',
    ],
    [
      `${CALICO}/ipv4pools`,
      '["10.20.0.7/24"]',
      '"10.20.0.7/24" is an address with a prefix, and no name of a pool; write "10.20.0.7" into berth.dev/ips',
    ],
    [
      "ipam.spidernet.io/ippool",
      '{"ipv4":["we*"]}',
      '"we*" is no name of a pool; wildcards are not served: write the names, in the order of preference',
    ],
    ["ipam.cilium.io/ip-pool", "Green", '"Green" is no name of a pool; write "green"'],
    [
      "networking.alibaba.com/specified-subnet",
      "10.20.0.7/24",
      '"10.20.0.7/24" is an address with a prefix, and no name of a pool; write "10.20.0.7" into berth.dev/ips',
    ],
  ] as const) {
    it(`${key}: ${value}`, () => {
      assert.equal(refusalOf(readRequest({ [key]: value })), `REQUEST_INVALID: annotation ${key}: ${words}`);
    });
  }
});

describe("a CIDR in the place of a pool", () => {
  for (const [key, value, pool] of [
    [`${CALICO}/ipv6pools`, '["FD00:20:0::/120"]', "fd00:20::/120"],
    ["ipam.antrea.io/ippools", "10.20.0.0/24", "10.20.0.0/24"],
    ["ipam.antrea.io/ippools", "db/IPv6", "db/IPv6"],
    ["berth.dev/pools", "FD00:20::/120", "fd00:20::/120"],
  ] as const) {
    it(`${key}: ${value} is that of a range, however it is written`, () => {
      assert.deepEqual(granted(readRequest({ [key]: value })).pools, [pool]);
    });
  }
});
