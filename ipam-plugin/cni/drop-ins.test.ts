// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fromNumber } from "../../allocator/ip/address.ts";
import { readConfig } from "./config.ts";
import { DROP_INS } from "./drop-ins.ts";
import { isCniError } from "./errors.ts";
import { ipamOf, wordsOf } from "./testing/ipam-parts.ts";
import { flatFilesOf, withFlatFile } from "./whereabouts.ts";

/** What each want may be served with: `field family: name or first-last,...`. */
function wantsOf(ipam: object): readonly string[] {
  const { wants = [] } = ipamOf(ipam).dropIn ?? {};
  return wants.map(({ field, family = "", of }) => {
    const texts = of.map((one) => {
      if (typeof one === "string") return one;
      const at = (n: bigint) => fromNumber(n, one.cidr.family);
      return one.open.map(({ first, last }) => `${at(first)}-${at(last)}`).join(",");
    });
    return `${field} ${family}: ${texts.join(" | ")}`;
  });
}

const whereabouts = (more: object) => ({ type: "whereabouts", ...more });

describe("configurations of other IPAM plugins", () => {
  it("are read without a key that is not known, as their documents show them", () => {
    for (const { type, example } of DROP_INS) {
      const { unread, dropIn } = ipamOf({ type, ...example });
      assert.deepEqual([unread, dropIn?.type], [[], type]);
    }
  });

  it("of whereabouts begin at the network's first address unless they say otherwise", () => {
    for (const [more, wanted] of [
      [{ range: "192.168.2.225/28" }, "192.168.2.225-192.168.2.238"],
      [{ range: "192.168.2.230-192.168.2.233/28" }, "192.168.2.230-192.168.2.233"],
      [
        { range: "10.0.0.0/24", range_start: "10.0.0.5", range_end: "10.0.0.9", exclude: ["10.0.0.7"] },
        "10.0.0.5-10.0.0.6,10.0.0.8-10.0.0.9",
      ],
      [{ range: "10.0.0.0/29", exclude: ["10.0.0.4/31", "10.0.0.3/30"] }, "10.0.0.6-10.0.0.6"],
    ] as const)
      assert.deepEqual(wantsOf(whereabouts(more)), [`ipam.range IPv4: ${wanted}`]);
    const both = { ipRanges: [{ range: "10.0.0.0/30" }, { range: "fd00::/126", exclude: ["fd00::2/128"] }] };
    assert.deepEqual(wantsOf(whereabouts(both)), [
      "ipam.ipRanges[0].range IPv4: 10.0.0.1-10.0.0.2",
      "ipam.ipRanges[1].range IPv6: fd00::1-fd00::1,fd00::3-fd00::3",
    ]);
  });

  it("are refused where they mean what berth does not give", () => {
    for (const [ipam, words] of [
      [whereabouts({ range: "10.0.0.0/24", enable_l3: true }), /^ipam\.enable_l3 is not served/],
      [
        { type: "kube-ipam", subnet: "10.0.0.0/24", rangeStart: "10.0.0.9", rangeEnd: "10.0.0.5" },
        /^ipam\.rangeEnd is before rangeStart/,
      ],
      [whereabouts({}), /^ipam\.range and ipam\.ipRanges are missing/],
      [whereabouts({ range: "10.0.0.0/31" }), /too small/],
      [whereabouts({ range: "10.0.0.0/24", range_end: "10.0.1.5" }), /10\.0\.1\.5 is not in 10\.0\.0\.0\/24/],
      [whereabouts({ range: "10.0.0.9-10.0.0.5/24" }), /ends before it begins/],
      [whereabouts({ range: "10.0.0.0/24", exclude: ["fd00::1"] }), /fd00::1 is no IPv4 address or CIDR/],
      [whereabouts({ range: "10.0.0.0/24", addresses: [{ address: "10.0.0.5/24" }] }), /berth\.dev\/ips/],
      [whereabouts({ range: "10.0.0.0/24", ipRanges: [{ range: "10.1.0.0/24" }] }), /are both IPv4/],
      [whereabouts({ range: "10.0.0.0/24", ipRangs: [] }), /did you mean ipRanges\?/],
      [{ type: "antrea", ippools: ["a"], addresses: [{ address: "10.0.0.1/24" }] }, /one of them alone/],
      [{ type: "spiderpool", pools: ["a"] }, /no field of spiderpool's that berth knows.*"type": "berth"/],
      [{ type: "calico-ipam", assign_ipv4: "false" }, /are both false/],
      [{ type: "calico-ipam", assign_ipv4: "yes" }, /neither "true" nor "false"/],
      [{ type: "calico-ipam", ipv4_pools: ["fd00::/64"] }, /has a CIDR that is not IPv4/],
      [{ type: "kube-ipam" }, /^ipam\.subnet is missing/],
      [{ type: "static-ipam" }, /^ipam\.addresses has no address/],
    ] as const)
      assert.match(wordsOf(ipam), words);
  });

  it("of Calico mean IPv4 unless they say otherwise", () => {
    const families = (more: object) => ipamOf({ type: "calico-ipam", ...more }).dropIn?.families;
    assert.deepEqual(families({}), ["IPv4"]);
    assert.deepEqual(families({ assign_ipv6: "true" }), ["IPv4", "IPv6"]);
    assert.deepEqual(wantsOf({ type: "calico-ipam", ipv6_pools: ["p6"] }), []);
  });
});

describe("the flat file of whereabouts", () => {
  const configOf = (ipam: object) => {
    const config = readConfig(JSON.stringify({ name: "net", ipam }));
    assert.ok(!isCniError(config));
    return config;
  };

  it("is looked for in its own folders, and by nobody else", () => {
    const looked = (ipam: object) => flatFilesOf(configOf(ipam));
    assert.deepEqual(looked({ type: "berth" }), []);
    const usual = ["/etc/kubernetes/cni/net.d", "/etc/cni/net.d"].map(
      (dir) => `${dir}/whereabouts.d/whereabouts.conf`,
    );
    assert.deepEqual(looked(whereabouts({})), usual);
    const own = "/etc/cni/net.d/whereabouts.d/own.conf";
    assert.deepEqual(looked(whereabouts({ configuration_path: own })), [own, ...usual]);
    for (const path of [
      "/etc/shadow",
      "/etc/cni/net.d/whereabouts.d/../x",
      "/etc/cni/net.d/whereabouts.d/..",
    ])
      assert.ok(isCniError(looked(whereabouts({ configuration_path: path }))), path);
  });

  it("says what the network's configuration leaves out, and nothing else", () => {
    const stdin = JSON.stringify({ name: "net", ipam: whereabouts({ Range: "10.0.0.0/24" }) });
    const text = JSON.stringify({ range: "10.1.0.0/24", gateway: "10.0.0.1", log_level: "debug" });
    const full = withFlatFile(stdin, text, "/flat.conf");
    assert.ok(!isCniError(full));
    const ipam = full.fields.section("ipam");
    assert.deepEqual([ipam?.text("range"), ipam?.text("gateway")], ["10.0.0.0/24", "10.0.0.1"]);
    const bad = withFlatFile(stdin, "{ token: secret", "/flat.conf");
    assert.ok(isCniError(bad));
    assert.match(bad.msg, /^\/flat\.conf cannot be read: /);
    assert.doesNotMatch(bad.msg, /secret/);
  });
});
