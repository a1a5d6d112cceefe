// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Cidr, formatCidr, fromNumber, lastOf, parseCidr } from "./address.ts";
import { anyNumber } from "./testing/any-address.ts";

function cidrOf(text: string): Cidr {
  const cidr = parseCidr(text);
  assert.ok(cidr, `${text} is a CIDR`);
  return cidr;
}

describe("parseCidr", () => {
  for (const { text, network, hostBits, last } of [
    { text: "10.20.0.0/24", network: "10.20.0.0/24", hostBits: false, last: "10.20.0.255" },
    { text: "10.20.0.7/24", network: "10.20.0.0/24", hostBits: true, last: "10.20.0.255" },
    { text: "0.0.0.0/24", network: "0.0.0.0/24", hostBits: false, last: "0.0.0.255" },
    { text: "0.0.0.0/0", network: "0.0.0.0/0", hostBits: false, last: "255.255.255.255" },
    { text: "255.255.255.255/0", network: "0.0.0.0/0", hostBits: true, last: "255.255.255.255" },
    { text: "10.0.0.1/32", network: "10.0.0.1/32", hostBits: false, last: "10.0.0.1" },
    { text: "FD00:20::0/64", network: "fd00:20::/64", hostBits: false, last: "fd00:20::ffff:ffff:ffff:ffff" },
    { text: "fd00:20::5/126", network: "fd00:20::4/126", hostBits: true, last: "fd00:20::7" },
    { text: "::/0", network: "::/0", hostBits: false, last: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    { text: "fd00::1/128", network: "fd00::1/128", hostBits: false, last: "fd00::1" },
    { text: "::ffff:10.0.0.0/120", network: "10.0.0.0/24", hostBits: false, last: "10.0.0.255" },
    { text: "::ffff:10.0.0.1/96", network: "0.0.0.0/0", hostBits: true, last: "255.255.255.255" },
  ]) {
    it(`reads ${text}`, () => {
      const cidr = cidrOf(text);
      assert.equal(cidr.text, network);
      assert.equal(cidr.hostBits, hostBits);
      assert.equal(fromNumber(lastOf(cidr), cidr.family), last);
    });
  }

  for (const text of [
    "",
    "/",
    "10.0.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/024",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "10.0.0.0/8.0",
    "10.0.0.0/1e1",
    "10.0.0.0/24/24",
    "10.0.0.0/ 24",
    "10.0.0.0/255.255.255.0",
    "10.0.0/24",
    "010.0.0.0/24",
    "fd00::/129",
    "fd00::/1000",
    "fe80::%eth0/64",
    "::ffff:10.0.0.0/95",
    `${"1".repeat(1000)}/24`,
    `10.0.0.0/${"1".repeat(1000)}`,
  ]) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(parseCidr(text), undefined));
  }

  it("reads what formatCidr writes, and takes host bits off", () => {
    fc.assert(
      fc.property(anyNumber, fc.nat(128), ({ n, family }, length) => {
        const prefixLength = family === "IPv4" ? length % 33 : length;
        const cidr = cidrOf(`${fromNumber(n, family)}/${prefixLength}`);
        const reread = cidrOf(formatCidr(cidr));
        assert.deepEqual(reread, { ...cidr, hostBits: false });
        assert.equal(cidr.hostBits, cidr.base !== n);
        assert.ok(cidr.base <= n && n <= lastOf(cidr));
        assert.equal(
          lastOf(cidr) - cidr.base + 1n,
          2n ** BigInt((family === "IPv4" ? 32 : 128) - prefixLength),
        );
      }),
    );
  });
});
