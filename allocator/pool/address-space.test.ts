// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../base/errors.ts";
import { type Address, type Family, fromNumber, parseAddress, toNumber } from "../ip/address.ts";
import { formatInterval } from "../ip/ip-range.ts";
import {
  type AddressClass,
  type AddressSpace,
  capacity,
  classify,
  intervalsOf,
  rangeOf,
  readSpace,
  unavailableByDefault,
} from "./address-space.ts";
import type { PoolSpec } from "./pool-spec.ts";

function spaceFrom(spec: Pick<PoolSpec, "ranges" | "reserved">): AddressSpace {
  const space = readSpace(spec);
  assert.ok(!isRefusal(space), isRefusal(space) ? space.message : "");
  return space;
}

function addressOf(text: string): Address {
  const address = parseAddress(text);
  assert.ok(address);
  return address;
}

const db = spaceFrom({
  ranges: [
    {
      cidr: "10.20.0.0/24",
      from: "10.20.0.100",
      to: "10.20.0.199",
      gateway: "10.20.0.254",
      exclude: ["10.20.0.60-10.20.0.109"],
    },
    {
      cidr: "10.20.0.0/24",
      from: "10.20.0.50",
      to: "10.20.0.99",
      gateway: "10.20.0.70",
      exclude: ["10.20.0.190/31"],
    },
    { cidr: "fd00:20::/64", gateway: "fd00:20::1", exclude: ["fd00:20::10-fd00:20::1f"] },
  ],
  reserved: [
    "10.20.0.40-10.20.0.54",
    "10.20.0.108-10.20.0.111",
    "fd00:20::2-fd00:20::4",
    "fd00:20::4-fd00:20::5",
  ],
});

describe("classify", () => {
  for (const [text, expected] of [
    ["10.20.0.49", "outside"],
    ["10.20.0.50", "reserved"],
    ["10.20.0.54", "reserved"],
    ["10.20.0.55", "open"],
    ["10.20.0.59", "open"],
    ["10.20.0.60", "excluded"],
    ["10.20.0.70", "gateway"],
    ["10.20.0.109", "excluded"],
    ["10.20.0.111", "reserved"],
    ["10.20.0.112", "open"],
    ["10.20.0.190", "excluded"],
    ["10.20.0.199", "open"],
    ["10.20.0.200", "outside"],
    ["10.20.0.254", "outside"],
    ["10.21.0.55", "outside"],
    ["fd00:20::", "outside"],
    ["fd00:20::1", "gateway"],
    ["fd00:20::5", "reserved"],
    ["fd00:20::6", "open"],
    ["fd00:20::1f", "excluded"],
    ["fd00:20::ffff:ffff:ffff:ffff", "open"],
    ["fd00:20:0:1::", "outside"],
    ["::a14:37", "outside"],
  ] satisfies [string, AddressClass][]) {
    it(`of ${text} is ${expected}`, () => assert.equal(classify(db, addressOf(text)), expected));
  }
});

describe("a pool's space", () => {
  it("finds the range of an address", () => {
    assert.equal(rangeOf(db, addressOf("10.20.0.99")), db.ranges[1]);
    assert.equal(rangeOf(db, addressOf("10.20.0.100")), db.ranges[0]);
    assert.equal(rangeOf(db, addressOf("fd00:20::9")), db.ranges[2]);
    assert.equal(rangeOf(db, addressOf("10.20.0.200")), undefined);
  });

  it("lists its ranges in the order of the spec", () => {
    const texts = (family: Family) =>
      intervalsOf(db, family).map((interval) => formatInterval({ family, interval }));
    assert.deepEqual(texts("IPv4"), ["10.20.0.100-10.20.0.199", "10.20.0.50-10.20.0.99"]);
    assert.deepEqual(texts("IPv6"), ["fd00:20::1-fd00:20::ffff:ffff:ffff:ffff"]);
    assert.deepEqual(db.families, ["IPv4", "IPv6"]);
  });

  it("counts what it may give", () => {
    assert.equal(capacity(db, "IPv4"), 150n - 50n - 2n); // .70 is excluded as well
    assert.equal(capacity(db, "IPv6"), 2n ** 64n - 1n - 16n - 1n);
    assert.equal(capacity(spaceFrom({ ranges: [{ cidr: "10.0.0.1/32" }] }), "IPv4"), 1n);
    assert.equal(capacity(spaceFrom({ ranges: [{ cidr: "10.0.0.1/32", gateway: "10.0.0.1" }] }), "IPv4"), 0n);
    assert.equal(capacity(spaceFrom({ ranges: [{ cidr: "fd00::/126" }] }), "IPv6"), 3n);
    assert.equal(capacity(spaceFrom({ ranges: [{ cidr: "10.0.0.0/24" }] }), "IPv6"), 0n);
  });

  it("blocks for pickers exactly what is not open, and counts exactly what is open or reserved", () => {
    const n = fc.nat(63).map((low) => fromNumber(0x0a000000n + BigInt(low), "IPv4"));
    const interval = fc.tuple(n, n).map(([a, b]) => (toNumber(a) <= toNumber(b) ? `${a}-${b}` : `${b}-${a}`));
    const range = fc.record({ gateway: n, exclude: fc.array(interval, { maxLength: 3 }) });
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 62 }), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(
        cuts,
        range,
        range,
        fc.array(interval, { maxLength: 3 }),
        (bounds, one, other, reserved) => {
          const at = bounds.toSorted((a, b) => a - b).map((low) => `10.0.0.${low}`);
          const [from = "", to = "", nextFrom = "", nextTo = ""] = at;
          const cidr = "10.0.0.0/26";
          const space = readSpace({
            ranges: [
              { cidr, ...other, from: nextFrom, to: nextTo },
              { cidr, ...one, from, to },
            ],
            reserved,
          });
          fc.pre(!isRefusal(space));
          const runs = unavailableByDefault(space, "IPv4");
          const counts = { open: 0n, reserved: 0n, excluded: 0n, gateway: 0n, outside: 0n };
          for (let low = 0; low < 64; low++) {
            const address = addressOf(`10.0.0.${low}`);
            const kind = classify(space, address);
            counts[kind]++;
            assert.equal(
              runs.has(toNumber(address)),
              kind !== "open" && kind !== "outside",
              `${address} is ${kind}`,
            );
          }
          assert.equal(capacity(space, "IPv4"), counts.open + counts.reserved);
        },
      ),
    );
  });

  it("blocks nothing of a family that it has not", () => {
    const space = spaceFrom({ ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.0.1" }] });
    assert.equal(unavailableByDefault(space, "IPv6").size, 0n);
    assert.deepEqual([...unavailableByDefault(space, "IPv4")], [{ first: 0x0a000001n, last: 0x0a000001n }]);
  });
});

describe("readSpace", () => {
  for (const { name, ranges, reserved = [], message } of [
    { name: "no range", ranges: [], message: "spec.ranges is empty; give at least one range" },
    {
      name: "the same network twice",
      ranges: [{ cidr: "10.0.0.0/24" }, { cidr: "fd00::/64" }, { cidr: "10.0.0.0/24" }],
      message: "spec.ranges[2] overlaps spec.ranges[0] in 10.0.0.1-10.0.0.254; give each address one range",
    },
    {
      name: "one shared address",
      ranges: [
        { cidr: "fd00::/64", from: "fd00::9", to: "fd00::f" },
        { cidr: "fd00::/64", to: "fd00::9" },
      ],
      message: "spec.ranges[1] overlaps spec.ranges[0] in fd00::9; give each address one range",
    },
    {
      name: "a range inside a wide one",
      ranges: [{ cidr: "10.0.0.0/16" }, { cidr: "10.0.3.0/24" }, { cidr: "10.1.0.0/24" }],
      message: "spec.ranges[1] overlaps spec.ranges[0] in 10.0.3.1-10.0.3.254; give each address one range",
    },
    {
      name: "a wrong range",
      ranges: [{ cidr: "10.0.0.0/24" }, { cidr: "10.0.1.0/24", gateway: "10.0.9.1" }],
      message: "spec.ranges[1].gateway 10.0.9.1 is outside 10.0.1.0/24; give an address of that network",
    },
    {
      name: "reserved outside",
      ranges: [{ cidr: "10.0.0.0/24", to: "10.0.0.99" }],
      reserved: ["10.0.0.5", "10.0.0.100"],
      message: "spec.reserved[1] 10.0.0.100 is outside every range of the pool; give addresses of a range",
    },
    {
      name: "reserved of another family",
      ranges: [{ cidr: "10.0.0.0/24" }],
      reserved: ["::a00:5"],
      message: "spec.reserved[0] ::a00:5 is outside every range of the pool; give addresses of a range",
    },
    {
      name: "reserved that is nothing",
      ranges: [{ cidr: "10.0.0.0/24" }],
      reserved: ["10.0.0.5-7"],
      message:
        'spec.reserved[0] "10.0.0.5-7" is not an address, a range such as 10.0.0.5-10.0.0.9, or a CIDR',
    },
  ]) {
    it(`refuses ${name}`, () => {
      const refusal = readSpace({ ranges, reserved });
      assert.ok(isRefusal(refusal));
      assert.equal(refusal.message, message);
      assert.equal(refusal.code, "POOL_INVALID");
    });
  }
});
