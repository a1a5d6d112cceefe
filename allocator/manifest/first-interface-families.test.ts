// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { readRequest } from "./annotations.ts";

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const OVN = "ovn.kubernetes.io";
const LAN = "lan.shop.kubernetes.io";

function read(annotations: Labels) {
  const request = readRequest(annotations, { name: "shop", labels: {}, annotations: {} }, "macs");
  return isRefusal(request) ? request.message : request;
}

describe("families in other systems' words", () => {
  it("are of the first interface of a pod that has several", () => {
    const nic = { [NETWORKS]: "lan", [`${LAN}/logical_switch`]: "lan", [`${LAN}/ip_family`]: "ipv6" };
    assert.deepEqual(read({ ...nic, [`${OVN}/logical_switch`]: "db", [`${OVN}/ip_family`]: "ipv4" }), {
      interfacePools: { eth0: ["db/IPv4"], net1: ["lan/IPv6"] },
    });
    assert.deepEqual(read({ ...nic, [`${OVN}/logical_switch`]: "db", [`${OVN}/ip_family`]: "dual" }), {
      interfacePools: { eth0: ["db/IPv4", "db/IPv6"], net1: ["lan/IPv6"] },
    });
    assert.deepEqual(read({ ...nic, [`${OVN}/ip_family`]: "ipv4" }), {
      interfacePools: { net1: ["lan/IPv6"] },
    });
    const calico = { "cni.projectcalico.org/ipFamilies": '["IPv4"]' };
    assert.deepEqual(read({ ...calico, "berth.dev/pools": "db,lan@net1" }), {
      interfacePools: { eth0: ["db/IPv4"], net1: ["lan"] },
    });
    assert.deepEqual(read({ ...calico, "berth.dev/ips": "10.20.0.51,fd00::9@net1" }), {
      entries: [["10.20.0.51", "fd00::9"]],
      interfaces: { eth0: ["10.20.0.51"], net1: ["fd00::9"] },
    });
  });

  it("are of all of it where it has one, and so is what Berth's own annotation says", () => {
    const families = ["IPv4"];
    const one = { [`${OVN}/logical_switch`]: "db", [`${OVN}/ip_family`]: "ipv4" };
    assert.deepEqual(read(one), { pools: ["db"], families });
    const mac = { [`${OVN}/mac_address`]: "02:00:00:00:00:51" };
    assert.deepEqual((read({ ...one, ...mac }) as { families: unknown }).families, families);
    assert.deepEqual(read({ "berth.dev/pools": "db,lan@net1", "berth.dev/families": "IPv4" }), {
      interfacePools: { eth0: ["db"], net1: ["lan"] },
      families,
    });
  });

  it("are those of the pools that the pod and its namespace name together", () => {
    const calico = "cni.projectcalico.org";
    const own = { [`${calico}/ipFamilies`]: '["IPv4","IPv6"]', [`${calico}/ipv4pools`]: '["db"]' };
    const annotations = { ...own, [NETWORKS]: '[{"name":"lan","ips":["10.30.0.9"]}]' };
    const space = (more: Labels) => ({ name: "shop", labels: {}, annotations: more });
    assert.deepEqual(readRequest(annotations, space({ [`${calico}/ipv6pools`]: '["six"]' })), {
      entries: [["10.30.0.9"]],
      interfaces: { net1: ["10.30.0.9"] },
      interfacePools: { eth0: ["db/IPv4", "six/IPv6"] },
    });
    assert.match(String(read(annotations)), /ipFamilies: no pool of eth0 is named for IPv6, only db\/IPv4/);
  });

  for (const [annotations, words] of [
    [
      { [`${OVN}/ip_family`]: "ipv6", "berth.dev/ips": "10.20.0.51,10.30.0.51@net1" },
      /annotation ovn\.kubernetes\.io\/ip_family: it disagrees with the addresses of eth0; keep one of the two/,
    ],
    [
      { [`${OVN}/ip_family`]: "ipv6", "berth.dev/pools": "db/IPv4,lan@net1" },
      /annotation ovn\.kubernetes\.io\/ip_family: it disagrees with pool db\/IPv4 of eth0; keep one of the two/,
    ],
    [
      { [`${OVN}/ip_family`]: "dual", "berth.dev/pools": "db/IPv4,lan@net1" },
      /annotation ovn\.kubernetes\.io\/ip_family: no pool of eth0 is named for IPv6, only db\/IPv4; name one, or leave IPv6 out/,
    ],
    [
      { [`${OVN}/ip_family`]: "ipv6", "berth.dev/sticky": "eth0,net1" },
      /it is of eth0, for which no pool is named; write berth\.dev\/pools with one, such as db\/IPv6/,
    ],
    [
      { [NETWORKS]: "lan", [`${LAN}/logical_switch`]: "lan/IPv4", [`${LAN}/ip_family`]: "IPv6" },
      /annotation lan\.shop\.kubernetes\.io\/logical_switch: it disagrees with lan\.shop\.kubernetes\.io\/ip_family/,
    ],
  ] as const)
    it(`are refused where they contradict the rest: ${Object.values(annotations).join(" ")}`, () => {
      assert.match(String(read(annotations)), words);
    });
});
