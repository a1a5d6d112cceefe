// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../base/errors.ts";
import { type Family, fromNumber } from "./address.ts";
import {
  contains,
  formatInterval,
  type Interval,
  intersection,
  merge,
  parseInterval,
  parseRange,
  type Range,
  type RangeSpec,
} from "./ip-range.ts";

function rangeOf(spec: RangeSpec): Range {
  const range = parseRange(spec, "spec.ranges[1]");
  assert.ok(!isRefusal(range), isRefusal(range) ? range.message : "");
  return range;
}

function text(family: Family, interval: Interval): string {
  return formatInterval({ family, interval });
}

describe("parseInterval", () => {
  for (const [written, read] of [
    ["10.0.0.5", "10.0.0.5"],
    ["10.0.0.5-10.0.0.9", "10.0.0.5-10.0.0.9"],
    ["10.0.0.5-10.0.0.5", "10.0.0.5"],
    ["10.0.0.4/30", "10.0.0.4-10.0.0.7"],
    ["10.0.0.4/32", "10.0.0.4"],
    ["0.0.0.0/0", "0.0.0.0-255.255.255.255"],
    ["fd00::5", "fd00::5"],
    ["FD00::5-fd00:0::A", "fd00::5-fd00::a"],
    ["fd00::4/126", "fd00::4-fd00::7"],
    ["fd00::4/128", "fd00::4"],
    ["::ffff:10.0.0.5-10.0.0.9", "10.0.0.5-10.0.0.9"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ] as const) {
    it(`reads ${written}`, () => {
      const interval = parseInterval(written);
      assert.ok(interval);
      assert.equal(formatInterval(interval), read);
    });
  }

  for (const written of [
    "",
    "-",
    "10.0.0.5-",
    "-10.0.0.5",
    "10.0.0.9-10.0.0.5",
    "10.0.0.5 - 10.0.0.9",
    "10.0.0.5-9",
    "10.0.0.5-10.0.0.6-10.0.0.7",
    "10.0.0.5-fd00::5",
    "10.0.0.5/30",
    "10.0.0.4/30-10.0.0.8",
    "fd00::5/126",
    "10.0.0.5,10.0.0.6",
    "10.0.0.*",
  ]) {
    it(`refuses ${JSON.stringify(written)}`, () => assert.equal(parseInterval(written), undefined));
  }

  it("reads what formatInterval writes", () => {
    const number = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n });
    fc.assert(
      fc.property(fc.constantFrom<Family>("IPv4", "IPv6"), number, number, (family, a, b) => {
        const interval = a < b ? { first: a, last: b } : { first: b, last: a };
        assert.deepEqual(parseInterval(text(family, interval)), { family, interval });
      }),
    );
  });
});

describe("intervals", () => {
  const small = fc
    .tuple(fc.nat(40), fc.nat(9))
    .map(([first, size]) => ({ first: BigInt(first), last: BigInt(first + size) }));
  const numbers = Array.from({ length: 60 }, (_, n) => BigInt(n));

  it("share what is in both", () => {
    fc.assert(
      fc.property(small, small, (a, b) => {
        const shared = intersection(a, b);
        for (const n of numbers) {
          assert.equal(shared !== undefined && contains(shared, n), contains(a, n) && contains(b, n));
        }
      }),
    );
  });

  it("merge to the same numbers, ascending and apart", () => {
    fc.assert(
      fc.property(fc.array(small, { maxLength: 8 }), (intervals) => {
        const merged = merge(intervals);
        for (const n of numbers) {
          assert.equal(
            merged.filter((one) => contains(one, n)).length,
            intervals.some((one) => contains(one, n)) ? 1 : 0,
          );
        }
        for (const [i, one] of merged.slice(1).entries()) assert.ok(one.first > (merged[i]?.last ?? 0n) + 1n);
      }),
    );
  });
});

describe("parseRange", () => {
  for (const [cidr, usable] of [
    ["10.20.0.0/24", "10.20.0.1-10.20.0.254"],
    ["0.0.0.0/24", "0.0.0.1-0.0.0.254"],
    ["255.255.255.0/24", "255.255.255.1-255.255.255.254"],
    ["10.0.0.4/30", "10.0.0.5-10.0.0.6"],
    ["10.0.0.4/31", "10.0.0.4-10.0.0.5"],
    ["10.0.0.4/32", "10.0.0.4"],
    ["0.0.0.0/0", "0.0.0.1-255.255.255.254"],
    ["fd00:20::/64", "fd00:20::1-fd00:20::ffff:ffff:ffff:ffff"],
    ["fd00::4/126", "fd00::5-fd00::7"],
    ["fd00::4/127", "fd00::4-fd00::5"],
    ["fd00::4/128", "fd00::4"],
    [
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:0/112",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
    ["::ffff:10.20.0.0/120", "10.20.0.1-10.20.0.254"],
  ] as const) {
    it(`gives ${usable} of ${cidr} when no bounds are named`, () => {
      const range = rangeOf({ cidr });
      assert.equal(text(range.family, range), usable);
      assert.equal(range.gateway, undefined);
      assert.deepEqual(range.excluded, []);
    });
  }

  for (const { spec, bounds, gateway, excluded, prefixLength } of [
    {
      spec: {
        cidr: "10.20.0.0/24",
        from: "10.20.0.50",
        to: "10.20.0.199",
        gateway: "10.20.0.254",
        exclude: ["10.20.0.65-10.20.0.69", "10.20.0.60/30", "10.20.0.64"],
      },
      bounds: "10.20.0.50-10.20.0.199",
      gateway: "10.20.0.254",
      excluded: ["10.20.0.60-10.20.0.69"],
      prefixLength: 24,
    },
    {
      spec: {
        cidr: "fd00:20::/64",
        from: "FD00:20::50",
        gateway: "fd00:20::0",
        exclude: ["fd00:20::60/124", "fd00:20::51"],
      },
      bounds: "fd00:20::50-fd00:20::ffff:ffff:ffff:ffff",
      gateway: "fd00:20::",
      excluded: ["fd00:20::51", "fd00:20::60-fd00:20::6f"],
      prefixLength: 64,
    },
  ]) {
    it(`reads every field of ${spec.cidr}`, () => {
      const range = rangeOf(spec);
      assert.equal(text(range.family, range), bounds);
      assert.equal(range.gateway, gateway);
      assert.deepEqual(
        range.excluded.map((one) => text(range.family, one)),
        excluded,
      );
      assert.equal(range.prefixLength, prefixLength);
    });
  }

  for (const { spec, message } of [
    { spec: { cidr: "10.0.0.0" }, message: 'cidr "10.0.0.0" is not a CIDR such as 10.0.0.0/24 or fd00::/64' },
    {
      spec: { cidr: "02:00:5e:00:00:00/32" },
      message:
        'cidr "02:00:5e:00:00:00/32" is not a CIDR such as 10.0.0.0/24 or fd00::/64; of MAC address 02:00:5e:00:00:00 a pool has fe80::5eff:fe00:0, in a range of fe80::/64',
    },
    {
      spec: { cidr: "fe80::/64", from: "02:00:5e:00:00:01" },
      message:
        'from "02:00:5e:00:00:01" is not an IP address; of MAC address 02:00:5e:00:00:01 a pool has fe80::5eff:fe00:1, in a range of fe80::/64',
    },
    { spec: { cidr: "10.0.0.7/24" }, message: "cidr 10.0.0.7/24 has host bits; write 10.0.0.0/24" },
    { spec: { cidr: "fd00::7/64" }, message: "cidr fd00::7/64 has host bits; write fd00::/64" },
    {
      spec: { cidr: "::/64" },
      message: "cidr ::/64 holds IPv4-mapped addresses (::ffff:0:0/96); give a smaller network",
    },
    { spec: { cidr: "10.0.0.0/24", from: "10.0.0" }, message: 'from "10.0.0" is not an IP address' },
    { spec: { cidr: "10.0.0.0/24", from: "fd00::1" }, message: "from fd00::1 is IPv6; give an IPv4 address" },
    { spec: { cidr: "fd00::/64", to: "10.0.0.1" }, message: "to 10.0.0.1 is IPv4; give an IPv6 address" },
    {
      spec: { cidr: "10.0.0.0/24", from: "10.0.1.1" },
      message: "from 10.0.1.1 is outside 10.0.0.0/24; give an address of that network",
    },
    {
      spec: { cidr: "fd00::/64", to: "fd00:0:0:1::" },
      message: "to fd00:0:0:1:: is outside fd00::/64; give an address of that network",
    },
    {
      spec: { cidr: "10.0.0.0/24", from: "10.0.0.0" },
      message: "from 10.0.0.0 is the network address of 10.0.0.0/24; give one of 10.0.0.1-10.0.0.254",
    },
    {
      spec: { cidr: "10.0.0.0/24", to: "10.0.0.255" },
      message: "to 10.0.0.255 is the broadcast address of 10.0.0.0/24; give one of 10.0.0.1-10.0.0.254",
    },
    {
      spec: { cidr: "fd00::/126", from: "fd00::" },
      message: "from fd00:: is the subnet-router anycast address of fd00::/126; give one of fd00::1-fd00::3",
    },
    {
      spec: { cidr: "10.0.0.0/24", from: "10.0.0.9", to: "10.0.0.3" },
      message: "from 10.0.0.9 is above spec.ranges[1].to 10.0.0.3; exchange them",
    },
    {
      spec: { cidr: "10.0.0.0/24", gateway: "10.0.9.1" },
      message: "gateway 10.0.9.1 is outside 10.0.0.0/24; give an address of that network",
    },
    {
      spec: { cidr: "10.0.0.0/24", gateway: "fd00::1" },
      message: "gateway fd00::1 is IPv6; give an IPv4 address",
    },
    {
      spec: { cidr: "10.0.0.0/24", gateway: "10.0.0.255" },
      message: "gateway 10.0.0.255 is the broadcast address of 10.0.0.0/24; give one of 10.0.0.1-10.0.0.254",
    },
    {
      spec: { cidr: "10.0.0.0/24", exclude: ["10.0.0.5", "10.0.0.9-10.0.0.7"] },
      message: 'exclude[1] "10.0.0.9-10.0.0.7" ends before it begins; write "10.0.0.7-10.0.0.9"',
    },
    {
      spec: { cidr: "10.0.0.0/24", exclude: ["10.0.0.5/30"] },
      message: "exclude[0] 10.0.0.5/30 has host bits; write 10.0.0.4/30",
    },
    {
      spec: { cidr: "10.0.0.0/24", exclude: ["10.0.1.5"] },
      message: "exclude[0] 10.0.1.5 is outside 10.0.0.0/24; give addresses of that network",
    },
    {
      spec: { cidr: "10.0.0.0/24", exclude: ["fd00::5"] },
      message: "exclude[0] fd00::5 is outside 10.0.0.0/24; give addresses of that network",
    },
  ]) {
    it(`refuses ${JSON.stringify(spec)}`, () => {
      const refusal = parseRange(spec, "spec.ranges[1]");
      assert.ok(isRefusal(refusal));
      assert.equal(refusal.message, `spec.ranges[1].${message}`);
      assert.equal(refusal.code, "POOL_INVALID");
      assert.equal(refusal.details["field"], `spec.ranges[1].${message.split(" ")[0]}`);
    });
  }

  it("cuts and escapes what it repeats from outside", () => {
    const refusal = parseRange({ cidr: `\n\u001b[31m${"x".repeat(10_000)}` }, "spec.ranges[0]");
    assert.ok(isRefusal(refusal));
    assert.match(refusal.message, /^spec\.ranges\[0\]\.cidr "\\n\\u001b\[31mx{94}\.\.\." is not a CIDR/);
  });

  it("keeps the gateway of a network of two", () => {
    assert.equal(rangeOf({ cidr: "10.0.0.4/31", gateway: "10.0.0.4" }).gateway, "10.0.0.4");
    assert.equal(rangeOf({ cidr: "fd00::4/127", gateway: "fd00::5" }).gateway, "fd00::5");
  });

  it("has its bounds and its gateway in its network, whatever it is given", () => {
    const address = fc.nat(520).map((n) => fromNumber(0x0a000000n + BigInt(n), "IPv4"));
    const optional = fc.option(address, { nil: undefined });
    fc.assert(
      fc.property(
        fc.integer({ min: 23, max: 32 }),
        optional,
        optional,
        optional,
        (length, from, to, gateway) => {
          const spec = {
            cidr: `10.0.0.0/${length}`,
            ...(from && { from }),
            ...(to && { to }),
            ...(gateway && { gateway }),
          };
          const range = parseRange(spec, "spec.ranges[0]");
          if (isRefusal(range))
            return assert.match(range.message, /^spec\.ranges\[0\]\.(from|to|gateway) 10\./);
          const size = 2n ** BigInt(32 - length);
          assert.ok(
            range.first <= range.last &&
              range.first >= range.cidr.base &&
              range.last < range.cidr.base + size,
          );
          assert.equal(range.gateway, gateway);
        },
      ),
    );
  });
});
