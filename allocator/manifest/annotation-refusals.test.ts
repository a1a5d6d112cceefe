// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refusalOf } from "../../test/support/fixtures.ts";
import { ANNOTATION_FORMATS, readRequest } from "./annotations.ts";
import { CALICO, entriesOf, IPS } from "./testing/entries.ts";

const POOLS = "berth.dev/pools";
const NO_RANGE = "is no range of addresses (write 10.20.0.51-10.20.0.55)";

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
