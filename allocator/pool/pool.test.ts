// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../base/errors.ts";
import { parseAddress } from "../ip/address.ts";
import { familiesOf, overlap, type Pool, parsePool, poolOf } from "./pool.ts";

function poolFrom(name: string, spec: unknown): Pool {
  const pool = parsePool({ name, spec });
  assert.ok(!isRefusal(pool), isRefusal(pool) ? pool.message : "");
  return pool;
}

const ranges = [{ cidr: "10.20.0.0/24" }];
const full = {
  ranges: [
    {
      cidr: "10.20.0.0/24",
      from: "10.20.0.50",
      to: "10.20.0.199",
      gateway: "10.20.0.254",
      exclude: ["10.20.0.60-10.20.0.69"],
    },
    { cidr: "fd00:20::/64" },
  ],
  reserved: ["10.20.0.50-10.20.0.59"],
  routes: [
    { dst: "0.0.0.0/0" },
    { dst: "10.0.0.0/8", gw: "10.20.0.1", mtu: 1400, advmss: 1360, priority: 0, table: 100, scope: 0 },
  ],
  dns: {
    nameservers: ["10.20.0.2", "fd00:20::2"],
    domain: "shop.example",
    search: ["shop.example", "_tcp.example."],
    options: ["ndots:5", "single-request-reopen"],
  },
  blockSize: { ipv4: 26, ipv6: 122 },
  nodeSelector: { matchLabels: { "topology.kubernetes.io/zone": "beijing" } },
  namespaceSelector: {},
  podSelector: {},
  priority: -5,
  limits: { perNamespace: 50 },
  authorization: "ServiceAccount",
  cooldown: "1m30s",
  disabled: true,
};

describe("parsePool", () => {
  it("fills in what is not given", () => {
    const pool = poolFrom("db", { ranges });
    assert.deepEqual(
      [pool.name, pool.cooldownMs, pool.priority, pool.disabled, pool.authorization, pool.reserved],
      ["db", 30_000, 0, false, "Namespace", []],
    );
    assert.deepEqual(familiesOf(pool), ["IPv4"]);
    assert.deepEqual(pool.spec, { ranges });
  });

  it("keeps what is given", () => {
    const pool = poolFrom("db.shop-1", full);
    assert.deepEqual(
      [pool.name, pool.cooldownMs, pool.priority, pool.disabled, pool.authorization],
      ["db.shop-1", 90_000, -5, true, "ServiceAccount"],
    );
    assert.deepEqual(familiesOf(pool), ["IPv4", "IPv6"]);
    assert.deepEqual(pool.spec, full);
    assert.equal(pool.ranges.length, 2);
  });

  for (const name of [
    "",
    "Db",
    "db_1",
    "-db",
    "db-",
    "db..a",
    ".db",
    "db.",
    "db/a",
    "a".repeat(254),
    "db\n",
  ]) {
    it(`refuses the name ${JSON.stringify(name.slice(0, 20))}`, () => {
      const refusal = parsePool({ name, spec: { ranges } });
      assert.ok(isRefusal(refusal));
      assert.match(
        refusal.message,
        /^metadata\.name ".*" is not a DNS subdomain: lower-case letters, digits, - and \.$/,
      );
    });
  }

  for (const { spec, message } of [
    { spec: undefined, message: "spec must be an object, not undefined" },
    { spec: null, message: "spec must be an object, not null" },
    { spec: [], message: "spec must be an object, not a list" },
    { spec: {}, message: "spec.ranges is missing" },
    { spec: { ranges: {} }, message: "spec.ranges must be a list, not an object" },
    { spec: { ranges: ["10.0.0.0/24"] }, message: 'spec.ranges[0] must be an object, not "10.0.0.0/24"' },
    { spec: { ranges: [{ from: "10.0.0.1" }] }, message: "spec.ranges[0].cidr is missing" },
    { spec: { ranges: [{ cidr: 10 }] }, message: "spec.ranges[0].cidr must be text, not 10" },
    { spec: { ranges: [{ cidr: "" }] }, message: 'spec.ranges[0].cidr must be text, not ""' },
    {
      spec: { ranges: [{ cidr: "1".repeat(300) }] },
      message: "spec.ranges[0].cidr must have at most 253 characters",
    },
    {
      spec: { ranges: [{ cidr: "10.0.0.0/24", gatway: "10.0.0.1" }] },
      message: 'spec.ranges[0] has an unknown field "gatway"; did you mean gateway?',
    },
    {
      spec: { ranges: [{ cidr: "10.0.0.0/24", exclude: "10.0.0.1" }] },
      message: 'spec.ranges[0].exclude must be a list, not "10.0.0.1"',
    },
    {
      spec: { ranges: [{ cidr: "10.0.0.0/24", exclude: [null] }] },
      message: "spec.ranges[0].exclude[0] must be text, not null",
    },
    {
      spec: { ranges: Array(257).fill({ cidr: "10.0.0.0/24" }) },
      message: "spec.ranges has 257 entries; at most 256 are allowed",
    },
    {
      spec: { ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.9.1" }] },
      message: "spec.ranges[0].gateway 10.0.9.1 is outside 10.0.0.0/24; give an address of that network",
    },
    {
      spec: { ranges, reserved: ["10.20.1.0/24"] },
      message:
        "spec.reserved[0] 10.20.1.0-10.20.1.255 is outside every range of the pool; give addresses of a range",
    },
    { spec: { ranges, routes: [{ gw: "10.20.0.1" }] }, message: "spec.routes[0].dst is missing" },
    {
      spec: { ranges, routes: [{ dst: "10.0.0.0/8", mtu: 67 }] },
      message: "spec.routes[0].mtu must be a whole number from 68 to 65535, not 67",
    },
    {
      spec: { ranges, routes: [{ dst: "10.0.0.0/8", scope: 256 }] },
      message: "spec.routes[0].scope must be a whole number from 0 to 255, not 256",
    },
    {
      spec: { ranges, routes: [{ dst: "0.0.0.0/0" }] },
      message: "spec.routes[0] 0.0.0.0/0 has no gw and spec.ranges[0] has no gateway; give one of the two",
    },
    {
      spec: { ranges, dns: { nameservers: ["10.20.0.2", "dns.example"] } },
      message: 'spec.dns.nameservers[1] "dns.example" is not an IP address',
    },
    {
      spec: { ranges, dns: { search: ["a\nnameserver 6.6.6.6"] } },
      message: 'spec.dns.search[0] "a\\nnameserver 6.6.6.6" is not of the form example.org',
    },
    {
      spec: { ranges, dns: { options: ["ndots: 5"] } },
      message: 'spec.dns.options[0] "ndots: 5" is not of the form ndots:5',
    },
    {
      spec: { ranges, blockSize: { ipv4: 33 } },
      message: "spec.blockSize.ipv4 must be a whole number from 1 to 32, not 33",
    },
    {
      spec: { ranges, blockSize: { ipv4: 23 } },
      message: "spec.blockSize.ipv4 23 makes blocks larger than 10.20.0.0/24; give 24 or more",
    },
    {
      spec: { ranges: [{ cidr: "10.0.0.0/8" }], blockSize: { ipv4: 19 } },
      message: "spec.blockSize.ipv4 19 makes blocks of more than 4096 addresses; give 20 or more",
    },
    {
      spec: { ranges: [{ cidr: "fd00::/64" }], blockSize: { ipv6: 115 } },
      message: "spec.blockSize.ipv6 115 makes blocks of more than 4096 addresses; give 116 or more",
    },
    {
      spec: { ranges, blockSize: { ipv6: 122 } },
      message: "spec.blockSize.ipv6 is given and the pool has no IPv6 range; drop it",
    },
    { spec: { ranges, nodeSelector: null }, message: "spec.nodeSelector must be an object, not null" },
    {
      spec: { ranges, podSelector: { app: "db" } },
      message: 'spec.podSelector has an unknown field "app"; known here: matchLabels, matchExpressions',
    },
    {
      spec: { ranges, priority: 1.5 },
      message: "spec.priority must be a whole number from -2147483648 to 2147483647, not 1.5",
    },
    {
      spec: { ranges, priority: "1" },
      message: 'spec.priority must be a whole number from -2147483648 to 2147483647, not "1"',
    },
    {
      spec: { ranges, limits: { perNamespace: 0 } },
      message: "spec.limits.perNamespace must be a whole number from 1 to 2147483647, not 0",
    },
    {
      spec: { ranges, limits: { perPod: 1 } },
      message: 'spec.limits has an unknown field "perPod"; known here: perNamespace, retention',
    },
    {
      spec: { ranges, limits: { retention: { perNamespace: -1 } } },
      message: "spec.limits.retention.perNamespace must be a whole number from 0 to 2147483647, not -1",
    },
    {
      spec: { ranges, limits: { retention: { ttl: "a month" } } },
      message: 'spec.limits.retention.ttl "a month" is not a duration such as 48h',
    },
    {
      spec: { ranges, authorization: "Pod" },
      message: 'spec.authorization must be one of Namespace, ServiceAccount, not "Pod"',
    },
    { spec: { ranges, cooldown: "30" }, message: 'spec.cooldown "30" is not a duration such as 30s or 5m' },
    { spec: { ranges, cooldown: 30 }, message: "spec.cooldown must be text, not 30" },
    { spec: { ranges, disabled: "false" }, message: 'spec.disabled must be true or false, not "false"' },
    {
      spec: { ranges, Disabled: true },
      message: 'spec has an unknown field "Disabled"; did you mean disabled?',
    },
    {
      spec: JSON.parse('{"ranges":[{"cidr":"10.20.0.0/24","__proto__":{}}]}'),
      message:
        'spec.ranges[0] has an unknown field "__proto__"; known here: cidr, from, to, gateway, exclude',
    },
  ]) {
    it(`refuses ${JSON.stringify(spec)?.slice(0, 90)}`, () => {
      const refusal = parsePool({ name: "db", spec });
      assert.ok(isRefusal(refusal));
      assert.equal(refusal.message, message);
      assert.equal(refusal.code, "POOL_INVALID");
      assert.deepEqual(refusal.details, { field: message.split(" ")[0], pool: "db" });
    });
  }

  it("answers a pool or a refusal for any JSON, in the place of any field", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(full), "other"), fc.jsonValue(), (field, value) => {
        const pool = parsePool({ name: "db", spec: { ...full, [field]: value } });
        if (isRefusal(pool)) assert.match(pool.message, /^spec/);
        else assert.equal(pool.name, "db");
      }),
    );
  });
});

describe("overlap", () => {
  const one = poolFrom("one", {
    ranges: [
      { cidr: "fd00::/64", to: "fd00::ff" },
      { cidr: "10.0.0.0/24", to: "10.0.0.99", gateway: "10.0.0.254" },
    ],
  });
  for (const { name, other, shared } of [
    {
      name: "the rest of the network",
      other: [
        { cidr: "10.0.0.0/24", from: "10.0.0.100", gateway: "10.0.0.254" },
        { cidr: "fd00::/64", from: "fd00::100" },
      ],
      shared: undefined,
    },
    {
      name: "one address",
      other: [{ cidr: "10.0.0.0/24", from: "10.0.0.99" }],
      shared: { first: "10.0.0.99", last: "10.0.0.99" },
    },
    {
      name: "a wider network",
      other: [{ cidr: "fd00::/48" }],
      shared: { first: "fd00::1", last: "fd00::ff" },
    },
    { name: "the same numbers in the other family", other: [{ cidr: "::a00:0/120" }], shared: undefined },
  ]) {
    it(`with a pool of ${name} is ${shared === undefined ? "none" : `${shared.first}-${shared.last}`}`, () => {
      const pool = poolFrom("other", { ranges: other });
      assert.deepEqual(overlap(one, pool), shared);
      assert.deepEqual(overlap(pool, one), shared);
    });
  }
});

describe("poolOf", () => {
  it("finds the pool that has the address in its bounds", () => {
    const low = poolFrom("low", { ranges: [{ cidr: "10.0.0.0/24", to: "10.0.0.99" }] });
    const high = poolFrom("high", {
      ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.100" }, { cidr: "fd00::/64" }],
    });
    const nameOf = (text: string) => {
      const address = parseAddress(text);
      assert.ok(address);
      return poolOf([low, high].values(), address)?.name;
    };
    assert.deepEqual(["10.0.0.99", "10.0.0.100", "fd00::9", "10.0.0.255", "10.0.1.1"].map(nameOf), [
      "low",
      "high",
      "high",
      undefined,
      undefined,
    ]);
  });
});
