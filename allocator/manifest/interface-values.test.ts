// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { formatAddresses } from "../model/interfaces.ts";
import { readRequest } from "./annotations.ts";

const IPS = "berth.dev/ips";

/** What each pod is asked for, as it would be told. */
function readOf(value: string): string[] {
  const { entries = [], interfaces } = granted(readRequest({ [IPS]: value }));
  return entries.map((entry) => formatAddresses(entry, interfaces).join("+"));
}

describe("addresses with interfaces", () => {
  for (const [value, entries] of [
    ["10.20.0.51,10.30.0.51@net1", ["10.20.0.51@eth0+10.30.0.51@net1"]],
    ["10.30.0.51@net1", ["10.30.0.51@net1"]],
    ["10.20.0.51@eth0", ["10.20.0.51@eth0"]],
    [" 10.20.0.51 , 10.30.0.51 @ net1 ", ["10.20.0.51@eth0+10.30.0.51@net1"]],
    [
      "10.20.0.51/fd00::51,10.30.0.51/fd00:30::51@net1",
      ["10.20.0.51@eth0+fd00::51@eth0+10.30.0.51@net1+fd00:30::51@net1"],
    ],
    ["10.30.0.51@net1,fd00:30::51@net1", ["10.30.0.51@net1+fd00:30::51@net1"]],
    [
      "10.20.0.1-10.20.0.2,10.30.0.1-10.30.0.2@net-1.a",
      ["10.20.0.1@eth0+10.30.0.1@net-1.a", "10.20.0.2@eth0+10.30.0.2@net-1.a"],
    ],
    ["10.20.0.51@net1,10.20.0.52@net1", ["10.20.0.51@net1+10.20.0.52@net1"]],
    ["10.20.0.51@eth0,10.20.0.52/fd00::1@eth0", ["10.20.0.51@eth0+10.20.0.52@eth0+fd00::1@eth0"]],
    [
      "10.20.0.1-10.20.0.2@net1,10.20.0.11-10.20.0.12@net1",
      ["10.20.0.1@net1+10.20.0.11@net1", "10.20.0.2@net1+10.20.0.12@net1"],
    ],
    ["10.20.0.1,10.30.0.1@net1;10.20.0.2;", ["10.20.0.1@eth0+10.30.0.1@net1", "10.20.0.2@eth0"]],
    ["10.20.0.1;10.20.0.2", ["10.20.0.1", "10.20.0.2"]],
  ] as const) {
    it(`are read of ${value}`, () => assert.deepEqual(readOf(value), entries));
  }

  for (const [value, words] of [
    ["10.20.0.51@", /"10.20.0.51@" names no interface of up to 15 characters; write 10\.30\.0\.51@net1/],
    ["10.20.0.51@a@b", /names no interface/],
    ["10.20.0.51@net/1", /is not an IP address|names no interface/],
    ["10.20.0.51@this-name-is-too-long", /names no interface/],
    ["@net1", /entry 1, "", is not an IP address .* \(interface net1\)/],
    [
      "10.20.0.51/24@net1",
      /has a prefix; write "10\.20\.0\.51", for the pool says the prefix \(interface net1\)/,
    ],
    ["10.20.0.51/10.20.0.52@net1", /two addresses of one family.* \(interface net1\)/],
    ["10.20.0.51,10.20.0.52@eth0", /two addresses of one family.* \(interface eth0\)/],
    [
      Array.from({ length: 17 }, (_, n) => `10.0.0.${n + 1}@net1`).join(),
      /names more than (8 interfaces|16 addresses)/,
    ],
    ["10.20.0.51,10.20.0.52,10.30.0.51@net1", /two addresses of one family.* \(interface eth0\)/],
    ["10.20.0.51,10.20.0.51@net1", /entry 1 has 10\.20\.0\.51 twice; an address is of one interface/],
    ["10.20.0.51@net1;10.20.0.51@net2", /entry 2 has 10\.20\.0\.51 again/],
    ["10.20.0.1-10.20.0.2,10.30.0.1@net1", /are not equally long/],
    [Array.from({ length: 9 }, (_, n) => `10.0.${n}.1@net${n}`).join(), /names more than 8 interfaces/],
    [Array.from({ length: 9 }, (_, n) => `10.0.${n}.1@net${n}`).join(";"), /names more than 8 interfaces/],
  ] as const) {
    it(`are refused of ${value.slice(0, 60)}`, () => {
      const message = refusalOf(readRequest({ [IPS]: value }));
      assert.match(message, /^REQUEST_INVALID/);
      assert.match(message, words);
    });
  }

  it("are no contradiction of what names the first interface", () => {
    const calico = "cni.projectcalico.org/ipAddrs";
    const with10001 = (ips: string) => readRequest({ [IPS]: ips, [calico]: '["10.0.0.1"]' });
    for (const [ips, reported] of [
      ["10.0.0.1@eth0", "10.0.0.1@eth0"],
      ["10.0.1.1@net1", "10.0.0.1@eth0,10.0.1.1@net1"],
      ["10.0.0.1,10.0.1.1@net1", "10.0.0.1@eth0,10.0.1.1@net1"],
    ] as const) {
      const { entries = [], interfaces } = granted(with10001(ips));
      assert.deepEqual(
        formatAddresses(entries[0] ?? [], interfaces)
          .toSorted()
          .join(),
        reported,
      );
    }
    for (const ips of [
      "10.0.0.2@eth0",
      "10.0.0.1@net1",
      "10.0.0.1@net1;10.0.0.2@net1",
      "10.0.0.2,10.0.1.1@net1",
    ])
      assert.match(refusalOf(with10001(ips)), /disagrees with/);
  });

  it("may be others, unless it cannot be said for which one of them", () => {
    const any = (ips: string) => readRequest({ [IPS]: ips, "berth.dev/fallback": "any" });
    assert.equal(granted(any("10.0.0.1,10.0.1.1@net1")).fallback, "any");
    assert.match(
      refusalOf(any("10.0.0.1@net1,10.0.0.2@net1")),
      /annotation berth\.dev\/fallback: it cannot stand beside several addresses of one family/,
    );
  });

  it("are an answer or a refusal, whatever is written, and nothing is of two interfaces", () => {
    const part = fc.constantFrom(
      "10.0.0.1",
      "10.0.0.2",
      "fd00::1",
      "@",
      "net1",
      "eth0",
      ",",
      ";",
      "/",
      "-",
      " ",
      "x",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
        const read = readRequest({ [IPS]: parts.join("") });
        if ("code" in read) return;
        const reported = (read.entries ?? []).flatMap((entry) => formatAddresses(entry, read.interfaces));
        assert.equal(new Set(reported.map((one) => one.split("@")[0])).size, reported.length);
        assert.ok(read.interfaces === undefined || reported.every((one) => one.includes("@")));
      }),
    );
  });
});

describe("pools of interfaces", () => {
  const POOLS = "berth.dev/pools";
  const STICKY = "berth.dev/sticky";
  const cases: readonly (readonly [Record<string, string>, Record<string, readonly string[]>])[] = [
    [{ [POOLS]: "db,web@net1" }, { eth0: ["db"], net1: ["web"] }],
    [{ [POOLS]: "web@net1, lan@net1,10.0.0.0/24@net2" }, { net1: ["web", "lan"], net2: ["10.0.0.0/24"] }],
    [{ [STICKY]: "eth0,net1" }, { eth0: [], net1: [] }],
    [
      { [STICKY]: "net1", [POOLS]: "db/IPv4" },
      { eth0: ["db/IPv4"], net1: [] },
    ],
    [{ [STICKY]: "true", [POOLS]: "db@net1" }, { net1: ["db"] }],
    [{ [IPS]: "10.0.1.1@net1", [POOLS]: "db" }, { eth0: ["db"] }],
    [{ [POOLS]: "db@eth0", "ipam.antrea.io/ippools": "db" }, { eth0: ["db"] }],
  ];
  for (const [annotations, pools] of cases) {
    it(`are read of ${JSON.stringify(annotations)}`, () => {
      const { pools: plain, interfacePools } = granted(readRequest(annotations));
      assert.deepEqual({ ...interfacePools }, pools);
      assert.equal(plain, undefined);
    });
  }

  for (const [annotations, words] of [
    [{ [POOLS]: "db@" }, /"db@" names no pool of an interface; write db@net1/],
    [{ [POOLS]: "@net1" }, /names no pool of an interface/],
    [{ [POOLS]: "db@net1@net2" }, /names no pool of an interface/],
    [{ [STICKY]: "eth0,eth0" }, /"eth0,eth0" is not known here/],
    [{ [POOLS]: "db@eth0", "ipam.antrea.io/ippools": "web" }, /disagrees with/],
    [{ [POOLS]: "db/IPv4@net1", "berth.dev/families": "IPv6" }, /disagrees with/],
    [{ [POOLS]: Array.from({ length: 9 }, (_, n) => `a@net${n}`).join() }, /more than 8 interfaces/],
  ] as const) {
    it(`are refused of ${JSON.stringify(annotations).slice(0, 60)}`, () =>
      assert.match(refusalOf(readRequest(annotations)), words));
  }

  it("are not for a namespace to ask for", () => {
    const space = { name: "shop", labels: {}, annotations: { [POOLS]: "db,web@net1" } };
    assert.match(refusalOf(readRequest({}, space)), /a namespace asks for its pods' first interface alone/);
  });
});

describe("Multus' networks", () => {
  const NETWORKS = "k8s.v1.cni.cncf.io/networks";
  const DEFAULT = "v1.multus-cni.io/default-network";
  const lan = (fields: object) => JSON.stringify([{ name: "lan", ...fields }]);
  const reported = (annotations: Record<string, string>) => {
    const { entries = [], interfaces } = granted(readRequest(annotations));
    return formatAddresses(entries[0] ?? [], interfaces).join();
  };

  for (const [annotations, wanted] of [
    [{ [NETWORKS]: "shop/lan@net1, web" }, ""],
    [{ [NETWORKS]: lan({}) }, ""],
    [{ [NETWORKS]: lan({ ips: ["10.30.0.51/24", "fd00::51/64"] }) }, "10.30.0.51@net1,fd00::51@net1"],
    [{ [NETWORKS]: lan({ ips: ["10.30.0.51", "10.30.0.52"] }) }, "10.30.0.51@net1,10.30.0.52@net1"],
    [{ [NETWORKS]: lan({ interface: "lan0", ips: ["10.30.0.51"] }) }, "10.30.0.51@lan0"],
    [{ [NETWORKS]: '[{"name":"a"},{"name":"b","ips":["10.30.0.51"]}]' }, "10.30.0.51@net2"],
    [{ [DEFAULT]: lan({ ips: ["10.20.0.51/24"] }) }, "10.20.0.51"],
    [
      { [DEFAULT]: lan({ ips: ["10.20.0.51"] }), [NETWORKS]: lan({ ips: ["10.30.0.51"] }) },
      "10.20.0.51@eth0,10.30.0.51@net1",
    ],
    [{ [IPS]: "10.20.0.51", [NETWORKS]: lan({ ips: ["10.30.0.51"] }) }, "10.20.0.51@eth0,10.30.0.51@net1"],
    [{ [IPS]: "10.30.0.51@net1", [NETWORKS]: lan({ ips: ["10.30.0.51"] }) }, "10.30.0.51@net1"],
  ] as const) {
    it(`ask for ${wanted || "nothing"} with ${JSON.stringify(annotations)}`, () =>
      assert.equal(reported(annotations), wanted));
  }

  it("and berth.dev/ips that say different things of an interface are refused, and both are named", () => {
    const asked = { [IPS]: "10.30.0.51@net1", [NETWORKS]: lan({ ips: ["10.30.0.52"] }) };
    assert.match(
      refusalOf(readRequest(asked)),
      /annotation k8s\.v1\.cni\.cncf\.io\/networks: it disagrees with berth\.dev\/ips; keep one/,
    );
    const twice = '[{"name":"a","ips":["10.0.0.1"]},{"name":"b","ips":["10.0.0.1"]}]';
    assert.match(refusalOf(readRequest({ [NETWORKS]: twice })), /10\.0\.0\.1 twice/);
    for (const ip of ["x", "10.30.0.51/33", "fd00::51/129", "10.30.0.51/"])
      assert.match(refusalOf(readRequest({ [NETWORKS]: lan({ ips: [ip] }) })), /its ips are not addresses/);
  });
});
