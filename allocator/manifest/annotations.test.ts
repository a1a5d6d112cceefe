// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, namespaceFacts, refusalOf } from "../../test/support/fixtures.ts";
import type { Labels } from "../base/ports.ts";
import { requestsAddress } from "../model/address-request.ts";
import { ANNOTATION_FORMATS, readRequest } from "./annotations.ts";

const IPS = "berth.dev/ips";
const POOLS = "berth.dev/pools";
const NO_RANGE = "is no range of addresses (write 10.20.0.51-10.20.0.55)";
const CALICO = "cni.projectcalico.org";

/** The entries in words: those of one pod joined by +. */
function entriesOf(annotations: Readonly<Record<string, string>>): string[] {
  return (granted(readRequest(annotations)).entries ?? []).map((entry) => entry.join("+"));
}

describe("berth.dev/ips", () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["10.20.0.51", ["10.20.0.51"]],
    ["FD00:20:0::51", ["fd00:20::51"]],
    ["::ffff:10.20.0.51", ["10.20.0.51"]],
    ["10.20.0.51,fd00::51", ["10.20.0.51+fd00::51"]],
    ["fd00::51/10.20.0.51", ["fd00::51+10.20.0.51"]],
    [" 10.20.0.51 , fd00::51 ", ["10.20.0.51+fd00::51"]],
    ["10.20.0.51;10.20.0.52", ["10.20.0.51", "10.20.0.52"]],
    ["10.20.0.51; 10.20.0.52;", ["10.20.0.51", "10.20.0.52"]],
    ["10.20.0.51/fd00::51;10.20.0.52/fd00::52", ["10.20.0.51+fd00::51", "10.20.0.52+fd00::52"]],
    ["10.20.0.9-10.20.0.11", ["10.20.0.9", "10.20.0.10", "10.20.0.11"]],
    ["10.20.0.255-10.20.1.0;10.20.0.7", ["10.20.0.255", "10.20.1.0", "10.20.0.7"]],
    ["fd00::f-fd00::10", ["fd00::f", "fd00::10"]],
    ["10.20.0.1-10.20.0.2/fd00::a-fd00::b", ["10.20.0.1+fd00::a", "10.20.0.2+fd00::b"]],
    [
      "10.20.0.1-10.20.0.2,fd00::a-fd00::b;10.20.0.9",
      ["10.20.0.1+fd00::a", "10.20.0.2+fd00::b", "10.20.0.9"],
    ],
    ["10.20.0.5-10.20.0.5", ["10.20.0.5"]],
  ];
  for (const [value, entries] of cases) {
    it(`reads ${value}`, () => {
      assert.deepEqual(entriesOf({ [IPS]: value }), entries);
    });
  }

  it("takes exactly 1024 entries and not one more", () => {
    assert.equal(entriesOf({ [IPS]: "10.20.0.0-10.20.3.255" }).length, 1024);
    const tooMany = `REQUEST_INVALID: annotation ${IPS}: it has more than 1024 entries`;
    assert.equal(refusalOf(readRequest({ [IPS]: "10.20.0.0-10.20.4.0" })), tooMany);
    assert.equal(refusalOf(readRequest({ [IPS]: "10.20.0.0-10.20.3.255;10.20.4.0" })), tooMany);
    assert.equal(refusalOf(readRequest({ [IPS]: "fd00::-fd00:ffff::" })), tooMany);
  });
});

describe("what the annotations say besides addresses", () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, unknown])[] = [
    [{}, {}],
    [{ "other.example/ips": "junk" }, {}],
    [{ "berth.dev/pools": "db" }, { pools: ["db"] }],
    [{ "berth.dev/pools": " db6 , ,db" }, { pools: ["db6", "db"] }],
    [{ "berth.dev/pools": "10.20.0.0/24" }, { pools: ["10.20.0.0/24"] }],
    [{ "berth.dev/sticky": "true" }, { sticky: true }],
    [{ "berth.dev/sticky": "false" }, {}],
    [{ "berth.dev/families": "IPv6" }, { families: ["IPv6"] }],
    [{ "berth.dev/families": "IPv4, IPv6" }, { families: ["IPv4", "IPv6"] }],
    [{ "berth.dev/when-deleted": "Retain" }, { retention: { whenDeleted: "Retain" } }],
    [
      { "berth.dev/when-deleted": "Retain", "berth.dev/when-scaled": "Release", "berth.dev/ttl": "1h30m" },
      { retention: { whenDeleted: "Retain", whenScaled: "Release", ttlMs: 5_400_000 } },
    ],
    [{ "berth.dev/ttl": "0" }, { retention: { ttlMs: 0 } }],
  ];
  for (const [annotations, request] of cases) {
    it(`reads ${JSON.stringify(annotations)}`, () => {
      assert.deepEqual(readRequest(annotations), request);
    });
  }
});

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

describe("refusals of annotations", () => {
  const list = `is not a JSON list of strings, such as '["10.20.0.51"]'`;
  const several = ', and the entries of several pods are set apart by ";"';
  const pair = `has two addresses of one family; a pod gets one of each, or with @eth0 behind each several of one${several}`;
  const three = `has more than two addresses; a pod gets one of each family${several}`;
  const cases: readonly (readonly [string, string, string])[] = [
    [IPS, "", "it is empty; write an address such as 10.20.0.51"],
    [IPS, " ; ", 'entry 1, "", is not an IP address (write 10.20.0.51 or fd00:20::51, no prefix)'],
    [
      IPS,
      "10.20.0.51/24",
      'entry 1, "10.20.0.51/24", has a prefix; write "10.20.0.51", for the pool says the prefix',
    ],
    [
      IPS,
      "10.20.0.50; 10.20.0.51, fd00:20::51/64",
      'entry 2, "fd00:20::51/64", has a prefix; write "fd00:20::51", for the pool says the prefix',
    ],
    [
      IPS,
      "10.20.0.51-10.20.0.55/24",
      'entry 1, "10.20.0.51-10.20.0.55/24", has a prefix; write "10.20.0.51-10.20.0.55", for the pool says the prefix',
    ],
    [
      IPS,
      "10.20.0.51;mysql",
      'entry 2, "mysql", is not an IP address (write 10.20.0.51 or fd00:20::51, no prefix)',
    ],
    [
      IPS,
      "10.20.0.9-10.20.0.1",
      'entry 1, "10.20.0.9-10.20.0.1", ends before it begins; write "10.20.0.1-10.20.0.9"',
    ],
    [IPS, "10.20.0.9-fd00::1", `entry 1, "10.20.0.9-fd00::1", ${NO_RANGE}`],
    [IPS, "10.20.0.1-2-3", `entry 1, "10.20.0.1-2-3", ${NO_RANGE}`],
    [POOLS, "db;web", '"db;web" is no name of a pool; pools are set apart by commas: "db,web"'],
    [POOLS, "db, web lab", '"web lab" is no name of a pool; pools are set apart by commas: "web,lab"'],
    [IPS, "10.20.0.1-10.20.0.2/fd00::1", 'the ranges in "10.20.0.1-10.20.0.2/fd00::1" are not equally long'],
    [IPS, "10.20.0.1,10.20.0.2", `"10.20.0.1,10.20.0.2" ${pair}`],
    [IPS, "10.20.0.1,fd00::1,fd00::2", `"10.20.0.1,fd00::1,fd00::2" ${three}`],
    [IPS, "10.20.0.1/24/fd00::1", `"10.20.0.1/24/fd00::1" ${three}`],
    [IPS, "10.20.0.1,::ffff:10.20.0.1", `"10.20.0.1,::ffff:10.20.0.1" ${pair}`],
    [IPS, "10.20.0.1;10.20.0.2;10.20.0.1", "entry 3 has 10.20.0.1 again; give each pod addresses of its own"],
    [
      IPS,
      "10.20.0.1/fd00::1;10.20.0.2/fd00::1",
      "entry 2 has fd00::1 again; give each pod addresses of its own",
    ],
    ["berth.dev/pools", "db/ipv4", '"db/ipv4" is no name of a pool; write "db/IPv4"'],
    ["berth.dev/pools", "db,db6/v6", '"db6/v6" is no name of a pool; write "db6/IPv6"'],
    ["berth.dev/pools", " , ", "it names no pool; write the name of an IPPool, or several with commas"],
    ["berth.dev/pools", "db,".repeat(65), "it names more than 64 pools"],
    ["berth.dev/pools", `${"d".repeat(254)}`, `"${"d".repeat(57)}..." is too long for the name of a pool`],
    ["berth.dev/sticky", "yes", '"yes" is not known here; write "true", "false" or interfaces: "eth0,net1"'],
    ["berth.dev/families", "ipv4", '"ipv4" is not known here; write IPv4, IPv6 or "IPv4,IPv6"'],
    ["berth.dev/families", "IPv4,IPv4", '"IPv4,IPv4" is not known here; write IPv4, IPv6 or "IPv4,IPv6"'],
    ["berth.dev/families", "", '"" is not known here; write IPv4, IPv6 or "IPv4,IPv6"'],
    ["berth.dev/fallback", "yes", '"yes" is not known here; write any, or none for a refusal'],
    ["berth.dev/when-deleted", "retain", '"retain" is not known here; write Release or Retain'],
    ["berth.dev/when-scaled", "", '"" is not known here; write Release or Retain'],
    ["berth.dev/ttl", "2 days", '"2 days" is not a duration; write 30s, 5m or 48h'],
    ["berth.dev/ttl", "-5m", '"-5m" is not a duration; write 30s, 5m or 48h'],
    [`${CALICO}/ipAddrs`, "10.20.0.51", `"10.20.0.51" ${list}`],
    [`${CALICO}/ipAddrs`, "[]", `"[]" ${list}`],
    [`${CALICO}/ipAddrs`, '["10.20.0.51",7]', `"[\\"10.20.0.51\\",7]" ${list}`],
    [`${CALICO}/ipAddrs`, '{"0":"10.20.0.51"}', `"{\\"0\\":\\"10.20.0.51\\"}" ${list}`],
    [
      `${CALICO}/ipAddrs`,
      '["mysql"]',
      'entry 1, "mysql", is not an IP address (write 10.20.0.51 or fd00:20::51, no prefix)',
    ],
    [
      `${CALICO}/ipAddrs`,
      '["10.0.0.1","10.0.0.2"]',
      `"[\\"10.0.0.1\\",\\"10.0.0.2\\"]" ${pair.slice(0, pair.indexOf(", or "))}`,
    ],
    [
      `${CALICO}/ipAddrs`,
      '["10.0.0.1","fd00::1","fd00::2"]',
      `"[\\"10.0.0.1\\",\\"fd00::1\\",\\"fd00::2\\"]" ${three.replace(several, "")}`,
    ],
    [
      "berth.dev/mac",
      "02:00:00:00:00:51",
      "a MAC address is pinned with the addresses of its interface; write berth.dev/ips or berth.dev/pools beside it",
    ],
    [`${CALICO}/ipv4pools`, '[""]', "it names no pool; write the name of an IPPool, or several with commas"],
    [`${CALICO}/ipv6pools`, "null", `"null" is not a JSON list of names, such as '["pool-1"]'`],
    [`${CALICO}/ipv6pools`, '["10.9.0.0/16"]', '"10.9.0.0/16" is not of IPv6'],
    [
      `${CALICO}/ipFamilies`,
      '["ipv4"]',
      `"[\\"ipv4\\"]" is not a JSON list of IPv4 and IPv6, such as '["IPv4"]'`,
    ],
    [
      `${CALICO}/hwAddr`,
      "1c:0c:0a:c0:ff",
      '"1c:0c:0a:c0:ff" is no MAC address of an interface, such as 02:00:00:00:00:51',
    ],
  ];
  for (const [key, value, words] of cases) {
    it(`${key}: ${JSON.stringify(value)}`, () => {
      const refused = readRequest({ [key]: value }, undefined, "macs");
      assert.equal(refusalOf(refused), `REQUEST_INVALID: annotation ${key}: ${words}`);
      assert.deepEqual("details" in refused && refused.details, { annotation: key });
    });
  }

  it("a value that is longer than any list that is served, before it is read", () => {
    const refused = readRequest({ "berth.dev/ips": "10.20.0.70;".repeat(30_000) });
    assert.equal(
      refusalOf(refused),
      "REQUEST_INVALID: annotation berth.dev/ips: it is longer than 65536 characters",
    );
  });

  it("has a row for each annotation here", () => {
    const tested = new Set(cases.map(([key]) => key));
    assert.deepEqual(
      ANNOTATION_FORMATS.map(({ key }) => key).filter((key) => /berth|calico/.test(key) && !tested.has(key)),
      [],
    );
  });
});

describe("two annotations that speak of the same thing", () => {
  it("may say the same, in whatever spelling and order", () => {
    const annotations = {
      [IPS]: "10.20.0.51,fd00::51",
      [`${CALICO}/ipAddrs`]: '["FD00:0::51","10.20.0.51"]',
    };
    assert.deepEqual(entriesOf(annotations), ["10.20.0.51+fd00::51"]);
    const pools = { "berth.dev/pools": "db/IPv4", [`${CALICO}/ipv4pools`]: '["db"]' };
    assert.deepEqual(readRequest(pools), { pools: ["db/IPv4"] });
  });

  it("of two other systems are refused, too, whatever they count from", () => {
    const pools = { [`${CALICO}/ipv4pools`]: '["db"]', "ipam.cilium.io/ipv4-pool": "web" };
    assert.equal(
      refusalOf(readRequest(pools)),
      `REQUEST_INVALID: annotation ipam.cilium.io/ipv4-pool: it disagrees with ${CALICO}/ipv4pools; keep one of the two`,
    );
    const lists = { [IPS]: "10.20.0.51;10.20.0.52", "ovn.kubernetes.io/ip_pool": "10.20.0.51,10.20.0.52" };
    assert.equal(
      refusalOf(readRequest(lists)),
      `REQUEST_INVALID: annotation ovn.kubernetes.io/ip_pool: its list and that of ${IPS} count differently: one from ordinal 0, the other from the set's first ordinal; write both in the words of one system`,
    );
    const families = { [`${CALICO}/ipv6pools`]: '["db"]', "ovn.kubernetes.io/ip_family": "ipv4" };
    assert.equal(
      refusalOf(readRequest(families)),
      `REQUEST_INVALID: annotation ovn.kubernetes.io/ip_family: it disagrees with ${CALICO}/ipv6pools; keep one of the two`,
    );
    const kept = { "berth.dev/when-deleted": "Release", "ipam.spidernet.io/ippool-reclaim": "false" };
    assert.equal(
      refusalOf(readRequest(kept)),
      "REQUEST_INVALID: annotation ipam.spidernet.io/ippool-reclaim: it disagrees with berth.dev/when-deleted; keep one of the two",
    );
  });

  it("are refused when they disagree, naming both", () => {
    assert.equal(
      refusalOf(readRequest({ [IPS]: "10.20.0.51", [`${CALICO}/ipAddrs`]: '["10.20.0.52"]' })),
      `REQUEST_INVALID: annotation ${CALICO}/ipAddrs: it disagrees with ${IPS}; keep one of the two`,
    );
    assert.equal(
      refusalOf(readRequest({ "berth.dev/pools": "db", [`${CALICO}/ipv6pools`]: '["db6"]' })),
      `REQUEST_INVALID: annotation ${CALICO}/ipv6pools: it disagrees with berth.dev/pools; keep one of the two`,
    );
    assert.equal(
      refusalOf(readRequest({ [IPS]: "10.20.0.51;10.20.0.52", [`${CALICO}/ipAddrs`]: '["10.20.0.51"]' })),
      `REQUEST_INVALID: annotation ${CALICO}/ipAddrs: it disagrees with ${IPS}; keep one of the two`,
    );
  });
});

describe("the request of a pod in a namespace with defaults", () => {
  const shop = namespaceFacts("shop", {
    "berth.dev/pools": "db",
    "berth.dev/sticky": "true",
    [IPS]: "10.20.0.51",
    "berth.dev/ttl": "5m",
  });

  it("is for a silent pod what its namespace asks for and how long it is kept, but no address", () => {
    assert.deepEqual(readRequest({ app: "mysql" }, shop), {
      pools: ["db"],
      sticky: true,
      retention: { ttlMs: 300_000 },
    });
    assert.deepEqual(readRequest({}, namespaceFacts("bank")), {});
  });

  it("is its own if it asks for something itself, or cannot be read", () => {
    for (const own of [{ [IPS]: "10.20.0.7" }, { "berth.dev/pools": "web" }, { [IPS]: "junk" }]) {
      assert.deepEqual(readRequest(own, shop), readRequest(own));
    }
  });

  it("does not overrule a pod that says that it does not want to be sticky", () => {
    const request = granted(readRequest({ "berth.dev/sticky": "false" }, shop));
    assert.deepEqual(request, { pools: ["db"], retention: { ttlMs: 300_000 } });
  });

  it("is beside what another system's word says of keeping it, which asks for nothing by itself", () => {
    const own = { "networking.alibaba.com/ip-retain": "true" };
    const kept = { pools: ["db"], sticky: true, retention: { ttlMs: 300_000 } };
    assert.deepEqual(readRequest(own, shop), kept);
    const unkept = namespaceFacts("shop", { ...shop.annotations, "berth.dev/sticky": "false" });
    assert.deepEqual(readRequest(own, unkept), kept);
    const { sticky: _, ...released } = kept;
    assert.deepEqual(readRequest({ "networking.alibaba.com/ip-retain": "false" }, shop), released);
    assert.deepEqual(readRequest({ ...own, "berth.dev/sticky": "true" }, shop), { sticky: true });
    assert.deepEqual(readRequest(own, namespaceFacts("bank")), { sticky: true });
  });

  it("adds to families and retention, which ask for nothing alone", () => {
    const own = { "berth.dev/families": "IPv4", "berth.dev/ttl": "1h" };
    assert.equal(requestsAddress(granted(readRequest(own))), false);
    assert.deepEqual(readRequest(own, shop), {
      pools: ["db"],
      sticky: true,
      families: ["IPv4"],
      retention: { ttlMs: 3_600_000 },
    });
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
