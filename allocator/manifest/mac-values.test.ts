// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { readRequest } from "./annotations.ts";
import { withMacs } from "./mac-annotations.ts";
import { IPS, MAC } from "./mac-values.ts";

/** Entries and interfaces, or the refusal. */
function asked(annotations: Labels): unknown {
  const request = readRequest(annotations);
  if (isRefusal(request)) return request.message;
  const { entries = [], interfaces = {} } = request;
  return [entries.map((entry) => entry.join()), interfaces];
}

const refused = (annotations: Labels) => String(asked(annotations));

describe("berth.dev/mac", () => {
  it("pins a MAC address of each interface, with the addresses of it", () => {
    assert.deepEqual(
      asked({
        [IPS]: "10.20.0.51/fd00::51,10.30.0.51@net1",
        [MAC]: "02:00:00:00:00:51, 02:00:00:00:00:52@net1",
      }),
      [
        ["10.20.0.51,fd00::51,10.30.0.51,fe80::ff:fe00:51,fe80::ff:fe00:52"],
        {
          eth0: ["10.20.0.51", "fd00::51"],
          net1: ["10.30.0.51"],
          "mac-eth0": ["fe80::ff:fe00:51"],
          "mac-net1": ["fe80::ff:fe00:52"],
        },
      ],
    );
  });

  it("may have dashes or dots, as Go reads them", () => {
    const asIs = asked({ [IPS]: "10.20.0.51", [MAC]: "02:00:00:00:00:5a" });
    for (const mac of ["02-00-00-00-00-5A", "0200.0000.005a"])
      assert.deepEqual(asked({ [IPS]: "10.20.0.51", [MAC]: mac }), asIs);
    assert.deepEqual(
      asked({ [IPS]: "10.20.0.51-10.20.0.52", [MAC]: "0200.0000.0051-0200.0000.0052" }),
      asked({ [IPS]: "10.20.0.51-10.20.0.52", [MAC]: "02:00:00:00:00:51-02:00:00:00:00:52" }),
    );
  });

  it("is named where another system's MAC address is not the same", () => {
    const other = { "cni.projectcalico.org/hwAddr": "02:00:00:00:00:52" };
    const read = readRequest(
      { [IPS]: "10.20.0.51", [MAC]: "02:00:00:00:00:51", ...other },
      undefined,
      "macs",
    );
    assert.match(isRefusal(read) ? read.message : "", /hwAddr: it disagrees with berth\.dev\/mac;/);
  });

  it("is a list as berth.dev/ips is one", () => {
    const [entries] = asked({
      [IPS]: "10.20.0.51-10.20.0.52;10.20.0.60",
      [MAC]: "02:00:00:00:00:51-02:00:00:00:00:52;0A:00:00:00:00:01",
    }) as [string[]];
    assert.deepEqual(entries, [
      "10.20.0.51,fe80::ff:fe00:51",
      "10.20.0.52,fe80::ff:fe00:52",
      "10.20.0.60,fe80::800:ff:fe00:1",
    ]);
  });

  it("is refused where it can mean nothing, or somebody else", () => {
    const one = { [IPS]: "10.20.0.51" };
    for (const [annotations, words] of [
      [
        { [MAC]: "02:00:00:00:00:51" },
        /berth\.dev\/mac: a MAC address is pinned with the addresses.*berth\.dev\/ips/,
      ],
      [{ ...one, [MAC]: "" }, /berth\.dev\/mac: it is empty; write a MAC address such as 02:/],
      [
        { [IPS]: "10.20.0.51-10.20.0.53", [MAC]: "02:00:00:00:00:51-02:00:00:00:00:52" },
        /berth\.dev\/mac: entry 1 has MAC addresses for 2 pods, and berth\.dev\/ips addresses for 3; write ranges of one length$/,
      ],
      [{ ...one, [MAC]: "01:00:5e:00:00:01" }, /is no MAC address of an interface/],
      [{ ...one, [MAC]: "02:00:00:00:00" }, /is no MAC address of an interface/],
      [{ ...one, [MAC]: "" }, /is empty/],
      [{ ...one, [MAC]: "02:00:00:00:00:51@a-long-name-1" }, /up to 11 characters/],
      [{ ...one, [MAC]: "02:00:00:00:00:51;02:00:00:00:00:52" }, /it has 2 entries, and berth\.dev\/ips 1/],
      [
        { ...one, [MAC]: "02:00:00:00:00:51-02:00:00:00:00:52" },
        /MAC addresses for 2 pods, and berth\.dev\/ips addresses for 1;/,
      ],
      [{ ...one, [MAC]: "02:00:00:00:00:51-04:00:00:00:00:51" }, /keeps its first three bytes/],
      [{ [IPS]: "fe80::ff:fe00:51" }, /stands for a MAC address; write that into berth\.dev\/mac/],
      [{ [IPS]: "10.20.0.51,fe80::ff:fe00:51@net1" }, /stands for a MAC address/],
      [{ "cni.projectcalico.org/ipAddrs": '["fe80::ff:fe00:51"]' }, /stands for a MAC address/],
      [{ [IPS]: "10.30.0.51@mac-net1" }, /ips: interface "mac-net1" .* no address 10\.30\.0\.51; .* "net1"$/],
      [{ [IPS]: "10.30.0.51@mac-" }, /give the interface another name$/],
      [{ "berth.dev/pools": "db@mac-net1" }, /pools: interface "mac-net1" .* no address of a pool/],
      [{ "berth.dev/sticky": "eth0,mac-net1" }, /sticky: interface "mac-net1" .* no address of a pool/],
      [
        { "ipam.spidernet.io/ippools": '[{"interface":"mac-net1","ipv4":["db"]}]' },
        /interface "mac-net1" .* no address of a pool/,
      ],
      [
        { "k8s.v1.cni.cncf.io/networks": '[{"name":"lan","interface":"mac-net1","ips":["10.30.0.51/24"]}]' },
        /interface "mac-net1" stands for a MAC address/,
      ],
    ] as const)
      assert.match(refused(annotations), words);
  });

  it("is refused by its length and count before any of it is read", () => {
    const wrong = "no MAC address";
    for (const [value, words] of [
      [wrong.padEnd(64 * 1024 + 1), /is longer than 65536 characters/],
      [`${wrong}${";x".repeat(1024)}`, /has more than 1024 entries/],
      [`${wrong}${",x".repeat(8)}`, /names more than 8 interfaces/],
    ] as const)
      assert.match(refused({ [IPS]: "10.20.0.51", [MAC]: value }), words);
  });
});

describe("the networks of a pod", () => {
  const macs = new Map([["net1", "02:00:00:00:00:52"]]);
  const KEY = "k8s.v1.cni.cncf.io/networks";

  it("say the MAC addresses that the pod has, in either form", () => {
    const written = (text: string) => withMacs({ [KEY]: text }, macs);
    assert.deepEqual(JSON.parse(written("lab/lan, other@x0").annotations[KEY] ?? ""), [
      { name: "lan", namespace: "lab", mac: "02:00:00:00:00:52" },
      { name: "other", interface: "x0" },
    ]);
    const list = [
      { name: "a", interface: "x0" },
      { name: "lan", interface: "net1", ips: ["10.0.0.1/24"] },
    ];
    assert.deepEqual(JSON.parse(written(JSON.stringify(list)).annotations[KEY] ?? ""), [
      { name: "a", interface: "x0" },
      { name: "lan", interface: "net1", ips: ["10.0.0.1/24"], mac: "02:00:00:00:00:52" },
    ]);
  });

  it("are compared with what they say themselves, and told apart from what no network makes", () => {
    const say = (mac: string) => withMacs({ [KEY]: JSON.stringify([{ name: "lan", mac }]) }, macs);
    assert.deepEqual(say("02:00:00:00:00:99").other, ["net1"]);
    assert.deepEqual(say("02:00:00:00:00:52").other, []);
    assert.deepEqual(withMacs({}, macs), { annotations: {}, unwritten: ["net1"], other: [] });
    assert.deepEqual(withMacs({ [KEY]: "[{" }, macs).unwritten, ["net1"]);
    const first = { "v1.multus-cni.io/default-network": "lan" };
    const eth0 = new Map([["eth0", "02:00:00:00:00:51"]]);
    assert.deepEqual(withMacs(first, eth0).unwritten, []);
  });
});
