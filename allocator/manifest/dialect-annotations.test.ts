// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, namespaceFacts, refusalOf } from "../../test/support/fixtures.ts";
import type { Labels } from "../base/ports.ts";
import { readRequest } from "./annotations.ts";
import { CALICO, entriesOf, IPS } from "./testing/entries.ts";

describe("Calico's annotations", () => {
  it("reads addresses, which are those of one pod", () => {
    assert.deepEqual(entriesOf({ [`${CALICO}/ipAddrs`]: '["10.20.0.51"]' }), ["10.20.0.51"]);
    assert.deepEqual(entriesOf({ [`${CALICO}/ipAddrs`]: ' ["FD00::51", "10.20.0.51"] ' }), [
      "fd00::51+10.20.0.51",
    ]);
  });

  it("reads pools of both families, IPv4 first", () => {
    const annotations = {
      [`${CALICO}/ipv6pools`]: '["db6"]',
      [`${CALICO}/ipv4pools`]: '["db","10.9.0.0/16"]',
    };
    assert.deepEqual(readRequest(annotations), { pools: ["db/IPv4", "10.9.0.0/16", "db6/IPv6"] });
  });

  it("takes the pools of a family from the pod, or else from its namespace", () => {
    const shop = namespaceFacts("shop", {
      [`${CALICO}/ipv4pools`]: '["db"]',
      [`${CALICO}/ipv6pools`]: '["db6"]',
      [`${CALICO}/ipFamilies`]: '["IPv4","IPv6"]',
    });
    const own = { [`${CALICO}/ipv4pools`]: '["web"]' };
    assert.deepEqual(readRequest(own, shop), { pools: ["web/IPv4", "db6/IPv6"] });
    assert.deepEqual(readRequest({}, shop), { pools: ["db/IPv4", "db6/IPv6"], families: ["IPv4", "IPv6"] });
    assert.deepEqual(readRequest({ [IPS]: "10.20.0.7" }, shop), readRequest({ [IPS]: "10.20.0.7" }));
  });
});

describe("Cilium's pools", () => {
  const [ANY, V4, V6] = ["ip-pool", "ipv4-pool", "ipv6-pool"].map((key) => `ipam.cilium.io/${key}`) as [
    string,
    string,
    string,
  ];
  const read = (own: Labels, space: Labels) => granted(readRequest(own, namespaceFacts("shop", space))).pools;

  it("are of each family by its own key, and else by that of both", () => {
    for (const [own, expected] of [
      [{ [ANY]: "green" }, ["green"]],
      [{ [ANY]: "green", [V4]: "green4" }, ["green/IPv6", "green4/IPv4"]],
      [{ [ANY]: "green", [V6]: "green6" }, ["green/IPv4", "green6/IPv6"]],
      [{ [ANY]: "green", [V4]: "green4", [V6]: "green6" }, ["green4/IPv4", "green6/IPv6"]],
      [{ [ANY]: "green", [V4]: "" }, ["green"]],
      [{ [V4]: "green4" }, ["green4/IPv4"]],
    ] as const) {
      assert.deepEqual(read(own, {}), expected);
      assert.deepEqual(read({}, own), expected, "of a namespace");
    }
  });

  it("are the namespace's for a pod alone that names none, whichever family it names one of", () => {
    const space = { [ANY]: "blue", [V4]: "blue4" };
    for (const [own, others, expected] of [
      [{}, space, ["blue/IPv6", "blue4/IPv4"]],
      [{ [V4]: "green4" }, space, ["green4/IPv4"]],
      [{ [V6]: "green6" }, space, ["green6/IPv6"]],
      [{ [V6]: "green6" }, { [ANY]: "blue" }, ["green6/IPv6"]],
      [{ [V4]: "green4" }, { [V6]: "blue6", [ANY]: "blue" }, ["green4/IPv4"]],
      [{ [V4]: "green4" }, { [V4]: "blue4" }, ["green4/IPv4"]],
      [{ [ANY]: "green" }, space, ["green"]],
      [{ [ANY]: "green", [V4]: "green4" }, { [V6]: "blue6" }, ["green/IPv6", "green4/IPv4"]],
      [{ [V4]: "green4", [V6]: "green6" }, space, ["green4/IPv4", "green6/IPv6"]],
      [{ "berth.dev/pools": "db" }, space, ["db"]],
    ] as const)
      assert.deepEqual(read(own, others)?.toSorted(), expected.toSorted(), JSON.stringify([own, others]));
  });
});

describe("Spiderpool's pools", () => {
  it("are none where Go would read null", () => {
    for (const [key, value] of [
      ["ippool", '{"ipv4":["p"],"ipv6":null}'],
      ["subnet", '{"ipv4":["p"],"IPv6":null}'],
      ["ippools", '[{"interface":null,"ipv4":["p"],"ipv6":null}]'],
    ] as const)
      assert.deepEqual(readRequest({ [`ipam.spidernet.io/${key}`]: value }), { pools: ["p/IPv4"] }, value);
    const none = { "ipam.spidernet.io/ippool": '{"ipv4":null}' };
    assert.match(refusalOf(readRequest(none)), /it names no pool/);
  });
});
