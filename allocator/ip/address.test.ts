// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isIPv6 } from "node:net";
import { describe, it, mock } from "node:test";
import fc from "fast-check";
import { Address4, Address6 } from "ip-address";
import { BerthError } from "../base/errors.ts";
import {
  type Address,
  compareAddresses,
  familyOf,
  fromNumber,
  parseAddress,
  parseCidr,
  toNumber,
} from "./address.ts";
import { anyNumber, ipv4Number, ipv6Number, TOP4, TOP6 } from "./testing/any-address.ts";

/** Texts near to addresses: their letters and separators in any order. */
const nearAddress = fc.oneof(
  fc.string({ unit: fc.constantFrom("0", "1", "9", "25", "255", "256", ".", ".", ".", " "), maxLength: 9 }),
  fc.string({
    unit: fc.constantFrom("0", "1", "f", "ffff", "12345", ":", ":", "::", "1.2.3.4", "%", "/"),
    maxLength: 12,
  }),
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4Extended(),
);

describe("parseAddress", () => {
  for (const { text, canonical, family } of [
    { text: "0.0.0.0", canonical: "0.0.0.0", family: "IPv4" },
    { text: "10.20.0.51", canonical: "10.20.0.51", family: "IPv4" },
    { text: "255.255.255.255", canonical: "255.255.255.255", family: "IPv4" },
    { text: "::", canonical: "::", family: "IPv6" },
    { text: "::1", canonical: "::1", family: "IPv6" },
    { text: "FD00:0020:0:0:0:0:0:51", canonical: "fd00:20::51", family: "IPv6" },
    { text: "2001:db8:0:1:1:1:1:1", canonical: "2001:db8:0:1:1:1:1:1", family: "IPv6" },
    { text: "2001:db8:0:0:1:0:0:1", canonical: "2001:db8::1:0:0:1", family: "IPv6" },
    { text: "1:2:3:4:5:6:7::", canonical: "1:2:3:4:5:6:7:0", family: "IPv6" },
    {
      text: "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
      canonical: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
      family: "IPv6",
    },
    { text: "64:ff9b::192.0.2.1", canonical: "64:ff9b::c000:201", family: "IPv6" },
    { text: "::ffff:10.0.0.1", canonical: "10.0.0.1", family: "IPv4" },
    { text: "::FFFF:0a00:0001", canonical: "10.0.0.1", family: "IPv4" },
    { text: "0:0:0:0:0:ffff:0:0", canonical: "0.0.0.0", family: "IPv4" },
  ]) {
    it(`reads ${text}`, () => {
      const address = parseAddress(text);
      assert.ok(address);
      assert.equal(address, canonical);
      assert.equal(familyOf(address), family);
    });
  }

  for (const [what, text] of [
    ["nothing", ""],
    ["a blank before", " 10.0.0.1"],
    ["a blank behind", "10.0.0.1 "],
    ["a line end", "10.0.0.1\n"],
    ["an IPv4 prefix", "10.0.0.1/24"],
    ["an IPv6 prefix", "fd00::1/64"],
    ["a zone", "fe80::1%eth0"],
    ["a leading zero", "10.0.0.01"],
    ["two zeros", "10.0.00.1"],
    ["a leading zero in an IPv4-mapped address", "::ffff:10.0.0.01"],
    ["octal", "0177.0.0.1"],
    ["hexadecimal", "0x7f.0.0.1"],
    ["one number", "167772161"],
    ["three octets", "10.0.1"],
    ["five octets", "1.1.1.1.1"],
    ["an empty octet", "10..0.1"],
    ["a dot before", ".10.0.0.1"],
    ["a dot behind", "10.0.0.1."],
    ["an octet over 255", "10.0.0.256"],
    ["a sign", "10.0.0.+1"],
    ["other digits", "10.0.0.١"],
    ["a name", "localhost"],
    ["brackets", "[::1]"],
    ["two elisions", "1::2::3"],
    ["three colons", ":::1"],
    ["nine groups", "1:2:3:4:5:6:7:8:9"],
    ["seven groups", "1:2:3:4:5:6:7"],
    ["a group of five digits", "fd00::12345"],
    ["a colon behind", "1:2:3:4:5:6:7:"],
    ["a dotted quad in the middle", "::1.2.3.4:1"],
  ] as const) {
    it(`refuses ${what}: ${JSON.stringify(text)}`, () => assert.equal(parseAddress(text), undefined));
  }

  it("reads no more of a text than an address can have", () => {
    for (const long of [
      "1".repeat(5_000_000),
      ":".repeat(5_000_000),
      `::${"0".repeat(5_000_000)}1`,
      "%".repeat(5_000_000),
    ]) {
      assert.equal(parseAddress(long), undefined);
    }
  });

  it("agrees with the IPv4 parser of ip-address", () => {
    fc.assert(
      fc.property(nearAddress, (text) => {
        const expected = /[/:]/.test(text) ? undefined : Address4.isValid(text);
        fc.pre(expected !== undefined);
        assert.equal(parseAddress(text) !== undefined, expected);
        if (expected) assert.equal(toNumber(text as Address), new Address4(text).bigInt());
      }),
    );
  });

  it("agrees with the IPv6 parser of Node.js, IPv4-mapped addresses folded", () => {
    fc.assert(
      fc.property(nearAddress, (text) => {
        fc.pre(text.includes(":"));
        assert.equal(parseAddress(text) !== undefined, isIPv6(text) && !text.includes("%"));
      }),
    );
  });

  it("reads and writes each valid one without the library, which takes twenty times as long", () => {
    const [parse, write] = [
      mock.method(Address6.prototype, "parse"),
      mock.method(Address6.prototype, "correctForm"),
    ];
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), nearAddress), (text) => {
        fc.pre(isIPv6(text) && !text.includes("%"));
        const address = parseAddress(text);
        assert.ok(address);
        assert.notEqual(parseCidr(`${text}/128`), undefined);
        toNumber(address);
      }),
    );
    const calls = [parse.mock.callCount(), write.mock.callCount()];
    mock.restoreAll();
    assert.deepEqual(calls, [0, 0]);
  });

  it("folds every IPv4-mapped address, however it is written", () => {
    fc.assert(
      fc.property(ipv4Number, (n) => {
        const plain = fromNumber(n, "IPv4");
        const groups = `${(n >> 16n).toString(16)}:${(n & 0xffffn).toString(16)}`;
        for (const text of [`::ffff:${plain}`, `::FFFF:${groups}`, `0:0:0:0:0:ffff:${groups}`]) {
          assert.equal(parseAddress(text), plain);
        }
        assert.equal(fromNumber((0xffffn << 32n) | n, "IPv6"), plain);
      }),
    );
  });
});

describe("numbers", () => {
  it("come back from the text, which is canonical", () => {
    fc.assert(
      fc.property(anyNumber, ({ n, family }) => {
        const address = fromNumber(n, family);
        assert.equal(familyOf(address), family);
        assert.equal(toNumber(address), n);
        assert.equal(parseAddress(address), address);
        assert.equal(parseAddress(address.toUpperCase()), address);
      }),
    );
  });

  it("are written as ip-address writes them", () => {
    fc.assert(
      fc.property(ipv4Number, ipv6Number, (small, wide) => {
        assert.equal(fromNumber(small, "IPv4"), Address4.fromBigInt(small).correctForm());
        assert.equal(fromNumber(wide, "IPv6"), Address6.fromBigInt(wide).correctForm());
      }),
    );
  });

  for (const { family, top, text } of [
    { family: "IPv4", top: TOP4, text: "255.255.255.255" },
    { family: "IPv6", top: TOP6, text: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
  ] as const) {
    it(`reach to ${text} and not beyond`, () => {
      assert.equal(fromNumber(top, family), text);
      for (const n of [top + 1n, -1n]) {
        assert.throws(
          () => fromNumber(n, family),
          (error) => error instanceof BerthError && error.code === "INTERNAL",
        );
      }
    });
  }
});

describe("compareAddresses", () => {
  it("sorts IPv4 first, then by number", () => {
    const texts = ["fd00::10", "10.0.0.10", "::", "9.255.255.255", "fd00::9", "10.0.0.9", "255.0.0.0"];
    const sorted = texts.map((text) => parseAddress(text) as Address).toSorted(compareAddresses);
    assert.deepEqual(sorted, [
      "9.255.255.255",
      "10.0.0.9",
      "10.0.0.10",
      "255.0.0.0",
      "::",
      "fd00::9",
      "fd00::10",
    ]);
  });

  it("orders within a family as the numbers are ordered, and equals only itself", () => {
    fc.assert(
      fc.property(anyNumber, anyNumber, (a, b) => {
        const order = Math.sign(compareAddresses(fromNumber(a.n, a.family), fromNumber(b.n, b.family)));
        const numeric = a.n === b.n ? 0 : a.n < b.n ? -1 : 1;
        const families = a.family === "IPv4" ? -1 : 1;
        assert.equal(order, a.family === b.family ? numeric : families);
      }),
    );
  });
});
