// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { forNamespacesAlone, nearMisses } from "./near-keys.ts";

describe("an annotation that is nearly one of another system's", () => {
  it("is told, with what may have been meant", () => {
    for (const [written, meant] of [
      ["ovn.kubernetes.io/ip_adress", "ovn.kubernetes.io/ip_address"],
      ["cni.projectcalico.org/ipAddr", "cni.projectcalico.org/ipAddrs"],
      ["ipam.spidernet.io/ippols", "ipam.spidernet.io/ippools"],
      ["lan.shop.kubernetes.io/ip_adress", "lan.shop.kubernetes.io/ip_address"],
      ["static-ipam.ip", "static-ipam.ipv4"],
      ["ipam.cilium.io/pool", "ipam.cilium.io/ip-pool"],
      ["lan.shop.ovn.kubernetes.io/ip_adress", "lan.shop.ovn.kubernetes.io/ip_address"],
      ["kube-ipam.ipv4", "kube-ipam.ip"],
      ["CNI.projectcalico.org/ipAddrs", "cni.projectcalico.org/ipAddrs"],
      ["Ipam.Cilium.io/Ip-Pool", "ipam.cilium.io/ip-pool"],
    ] as const) {
      const [words = "", ...more] = nearMisses({ [written]: "x" });
      assert.ok(words.startsWith(`berth knows no annotation ${written} of `), words);
      assert.ok(words.endsWith(`; did you mean ${meant}?`), words);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(nearMisses({ "ovn.kubernetes.io/ip_adress": "x" }, { kubeOvn: "none" }), []);
    assert.match(
      nearMisses({ "ovn.kubernetes.io/ip_address.net1": "x" }).join(),
      /did you mean <nad>\.<namespace>\.kubernetes\.io\/ip_address, of the network that makes net1\?$/,
    );
  });

  it("is none that a system has or writes itself", () => {
    const theirs = [
      ...[
        "allocated",
        "routed",
        "cidr",
        "gateway",
        "logical_router",
        "egress_rate",
        "ingress_rate",
        "vpc",
      ].map((name) => `ovn.kubernetes.io/${name}`),
      ...["podIP", "podIPs", "containerID"].map((name) => `cni.projectcalico.org/${name}`),
      ...["vm-ip-retain", "overlay-network"].map((name) => `networking.alibaba.com/${name}`),
      ...[
        "a.b.kubernetes.io/allocated",
        "a.b.kubernetes.io/ip_address.net1",
        "service.beta.kubernetes.io/ip",
      ],
      ...DIALECT_ROWS.map(({ key }) => key.replace("<nad>", "a").replace("<namespace>", "b")),
    ];
    assert.deepEqual(nearMisses(Object.fromEntries(theirs.map((key) => [key, "x"]))), []);
  });

  it("is told, too, where it is one for namespaces and stands on a pod", () => {
    const annotations = { "ipam.spidernet.io/default-ipv4-ippool": '["v4"]' };
    assert.deepEqual(forNamespacesAlone(annotations), [
      "annotation ipam.spidernet.io/default-ipv4-ippool is Spiderpool's, and is read on namespaces alone, not on a pod or template; write berth.dev/pools here, or it into the namespace",
    ]);
    assert.deepEqual(forNamespacesAlone(annotations, { spiderpool: "none" }), []);
    assert.deepEqual(forNamespacesAlone({ "cni.projectcalico.org/ipv4pools": '["v4"]' }), []);
  });

  it("is looked for among the first of many", () => {
    const many = Array.from({ length: 24_000 }, (_, n) => [`ovn.kubernetes.io/ip_addres${n % 10}${n}`, ""]);
    assert.ok(nearMisses(Object.fromEntries(many)).length <= 16);
  });
});
