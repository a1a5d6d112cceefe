// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { readRequest } from "./annotations.ts";
import { MAC } from "./mac-values.ts";
import { DEFAULT_NETWORK, NETWORKS } from "./network-attachments.ts";

const LAN = "lan.shop.kubernetes.io";
const OVN = "ovn.kubernetes.io";

function read(annotations: Labels, namespace: string | undefined = "shop") {
  const space = namespace === undefined ? undefined : { name: namespace, labels: {}, annotations: {} };
  return readRequest(annotations, space, "macs");
}

function refused(annotations: Labels, namespace?: string): string {
  const request = read(annotations, namespace);
  return isRefusal(request) ? request.message : assert.fail(JSON.stringify(request));
}

describe("kube-ovn's keys of an interface", () => {
  it("are of the interface that the named NetworkAttachmentDefinition makes, in either form of the list", () => {
    const asked = { entries: [["10.0.0.1"]], interfaces: { net2: ["10.0.0.1"] } };
    for (const networks of [
      "web/a,lan",
      "web/a, shop/lan",
      '[{"name":"a"},{"name":"lan","namespace":"shop"}]',
    ])
      assert.deepEqual(read({ [NETWORKS]: networks, [`${LAN}/ip_address`]: "10.0.0.1" }), asked, networks);
    const ovn = { [NETWORKS]: "web/a,lan", "lan.shop.ovn.kubernetes.io/ip_address": "10.0.0.1" };
    assert.deepEqual(read(ovn), asked);
    const dotted = { [NETWORKS]: "web/a,my.lan", "my.lan.shop.kubernetes.io/ip_address": "10.0.0.1" };
    assert.deepEqual(read(dotted), asked);
  });

  it("are of the first interface, where that network makes it, and stand beside kube-ovn's own of the first", () => {
    const first = { [DEFAULT_NETWORK]: "shop/lan", [`${LAN}/logical_switch`]: "web" };
    assert.deepEqual(read(first), { interfacePools: { eth0: ["web"] } });
    const both = {
      [NETWORKS]: "lan",
      [`${OVN}/ip_pool`]: "10.1.0.1,10.1.0.2",
      [`${LAN}/ip_pool`]: "10.2.0.1,10.2.0.2",
    };
    assert.deepEqual(read(both), {
      entries: [
        ["10.1.0.1", "10.2.0.1"],
        ["10.1.0.2", "10.2.0.2"],
      ],
      interfaces: { eth0: ["10.1.0.1", "10.1.0.2"], net1: ["10.2.0.1", "10.2.0.2"] },
      fromOrdinalZero: true,
    });
  });

  it("name the interface behind them where the pod has the network several times", () => {
    const twice = { [NETWORKS]: "lan@a0,lan@b0" };
    const named = { ...twice, [`${LAN}/ip_address.a0`]: "10.0.0.1", [`${LAN}/ip_address.b0`]: "10.0.0.2" };
    assert.deepEqual(read(named), {
      entries: [["10.0.0.1", "10.0.0.2"]],
      interfaces: { a0: ["10.0.0.1"], b0: ["10.0.0.2"] },
    });
    assert.deepEqual(read({ ...twice, [`${LAN}/logical_switch`]: "web" }), {
      interfacePools: { a0: ["web"], b0: ["web"] },
    });
    for (const [key, value] of [
      ["ip_address", "10.0.0.1"],
      ["mac_address", "02:00:00:00:00:01"],
    ] as const)
      assert.match(
        refused({ ...twice, [`${LAN}/${key}`]: value }),
        /has that network as a0 and b0; write \.a0 behind the key/,
      );
    assert.match(refused({ ...twice, [`${LAN}/ip_address.c0`]: "10.0.0.1" }), /as a0 and b0, not as "c0"/);
  });

  it("are refused where the pod has no such network", () => {
    const words = /the pod has no network "lan\.shop", by <nad>\.<namespace>; write that network into k8s/;
    assert.match(refused({ [`${LAN}/ip_address`]: "10.0.0.1" }), words);
    assert.match(refused({ [NETWORKS]: "web/lan", [`${LAN}/ip_address`]: "10.0.0.1" }), words);
    assert.match(refused({ [NETWORKS]: "lan", [`${LAN}/ip_address`]: "10.0.0.1" }, "web"), words);
  });

  it("may mean a network of the pod's own namespace, where that is not known", () => {
    const request = readRequest({ [NETWORKS]: "lan", [`${LAN}/ip_address`]: "10.0.0.1" });
    assert.deepEqual(request, { entries: [["10.0.0.1"]], interfaces: { net1: ["10.0.0.1"] } });
  });

  it("are results beside what kube-ovn writes with them", () => {
    const given = { [NETWORKS]: "lan", [`${LAN}/ip_address`]: "10.0.0.1", [`${LAN}/allocated`]: "true" };
    assert.deepEqual(read(given), {});
    const other = { ...given, [`${LAN}/allocated`]: "", [`${OVN}/allocated`]: "true" };
    assert.deepEqual(read(other), { entries: [["10.0.0.1"]], interfaces: { net1: ["10.0.0.1"] } });
  });

  it("take a family from the pool beside it, or compare it with the address", () => {
    const asking = (more: Labels) => ({ [NETWORKS]: "lan", [`${LAN}/ip_family`]: "ipv4", ...more });
    const pools = { interfacePools: { net1: ["web/IPv4"] } };
    assert.deepEqual(read(asking({ [`${LAN}/logical_switch`]: "web" })), pools);
    assert.deepEqual(read(asking({ [`${LAN}/ip_pool`]: "web" })), pools);
    for (const name of ["subnet1.prod", "pool-1.2", "10.0.0.0/24"])
      for (const key of ["logical_switch", "ip_pool"]) {
        const named = { interfacePools: { net1: [name.includes("/") ? name : `${name}/IPv4`] } };
        assert.deepEqual(read(asking({ [`${LAN}/${key}`]: name })), named);
      }
    const address = { entries: [["10.0.0.1"]], interfaces: { net1: ["10.0.0.1"] } };
    assert.deepEqual(read(asking({ [`${LAN}/ip_address`]: "10.0.0.1" })), address);
    assert.match(
      refused(asking({ [`${LAN}/ip_address`]: "fd00::1" })),
      /disagrees with the address beside it/,
    );
    assert.match(refused(asking({ "berth.dev/pools": "web@net1" })), /from its pool or address; write /);
    assert.match(refused(asking({ [`${LAN}/ip_family`]: "v4" })), /write IPv4, IPv6 or DualStack/);
  });

  it("have the pod's networks read once, however many there are", () => {
    let reads = 0;
    const dense = `[{"name":"lan","x":[${"[{}],".repeat(4_000)}0]}]`;
    const keys = Array.from({ length: 2_000 }, (_, n) => [`n${n}.shop.kubernetes.io/ip_family`, "ipv4"]);
    const annotations = {
      ...Object.fromEntries([[`${LAN}/ip_address`, "10.0.0.1"], ...keys]),
      get [NETWORKS]() {
        reads++;
        return dense;
      },
    };
    assert.match(refused(annotations), /the pod has no network "n0\.shop"/);
    assert.ok(reads < 20, String(reads)); // of which one is its being looked at for what it asks itself
  });

  it("contradict what others say of the interface", () => {
    const asking = {
      [NETWORKS]: '[{"name":"lan","ips":["10.0.0.1/24"]}]',
      [`${LAN}/ip_address`]: "10.0.0.2",
    };
    assert.match(refused(asking), /disagrees with .*keep one of the two/);
    assert.deepEqual(read({ ...asking, [`${LAN}/ip_address`]: "10.0.0.1" }), {
      entries: [["10.0.0.1"]],
      interfaces: { net1: ["10.0.0.1"] },
    });
  });
});

describe("MAC addresses in other systems' words", () => {
  const HARDWARE = "cni.projectcalico.org/hwAddr";
  const mac = "02:00:00:00:00:51";
  const asked = {
    entries: [["10.0.0.1", "fe80::ff:fe00:51"]],
    interfaces: { eth0: ["10.0.0.1"], "mac-eth0": ["fe80::ff:fe00:51"] },
  };

  it("are those of berth.dev/mac", () => {
    const own = { "berth.dev/ips": "10.0.0.1", [MAC]: mac };
    assert.deepEqual(read(own), asked);
    for (const [key, value] of [
      [HARDWARE, mac],
      [`${OVN}/mac_address`, mac.toUpperCase()],
      ["networking.alibaba.com/mac-pool", mac],
      ["cni.cilium.io/mac-address", mac],
      [DEFAULT_NETWORK, `[{"name":"lan","mac":"${mac}"}]`],
    ] as const) {
      assert.deepEqual(read({ "berth.dev/ips": "10.0.0.1", [key]: value }), asked, key);
      assert.deepEqual(read({ ...own, [key]: value }), asked, key);
    }
    assert.match(
      refused({ ...own, [HARDWARE]: "02:00:00:00:00:52" }),
      /hwAddr: it disagrees with berth\.dev\//,
    );
  });

  it("go with pools, with what is kept, and with a namespace's default", () => {
    const entries = { entries: [["fe80::ff:fe00:51"]], interfaces: { "mac-eth0": ["fe80::ff:fe00:51"] } };
    const pools = { ...entries, interfacePools: { eth0: ["db"] } };
    assert.deepEqual(read({ "berth.dev/pools": "db", [HARDWARE]: mac }), pools);
    const space = { name: "shop", labels: {}, annotations: { "berth.dev/pools": "db" } };
    assert.deepEqual(readRequest({ [HARDWARE]: mac }, space, "macs"), pools);
    const kept = { ...entries, sticky: true, interfacePools: { eth0: [] } };
    assert.deepEqual(read({ "berth.dev/sticky": "true", [HARDWARE]: mac }), kept);
  });

  it("ask for nothing by themselves, and are read only where pools are known", () => {
    assert.deepEqual(read({ [HARDWARE]: mac }), {});
    assert.deepEqual(read({ [HARDWARE]: mac, [`${OVN}/ip_family`]: "ipv4" }), { families: ["IPv4"] });
    const both = { "berth.dev/ips": "10.0.0.1", [HARDWARE]: mac };
    assert.deepEqual(readRequest(both), { entries: [["10.0.0.1"]] });
  });

  it("are as many as the pods of a list", () => {
    const key = "networking.alibaba.com/mac-pool";
    const lists = {
      "networking.alibaba.com/ip-pool": "10.0.0.1,10.0.0.2",
      [key]: `${mac},02:00:00:00:00:52`,
    };
    assert.deepEqual(read(lists), {
      entries: [
        ["10.0.0.1", "fe80::ff:fe00:51"],
        ["10.0.0.2", "fe80::ff:fe00:52"],
      ],
      interfaces: { eth0: ["10.0.0.1", "10.0.0.2"], "mac-eth0": ["fe80::ff:fe00:51", "fe80::ff:fe00:52"] },
      fromOrdinalZero: true,
    });
    assert.match(refused({ ...lists, [key]: mac }), /disagrees with/);
    assert.match(
      refused({ ...lists, [key]: `${mac},${mac}` }),
      /entry 2 has fe80::ff:fe00:51 \(MAC address 02:00:00:00:00:51\) again/,
    );
  });
});
