// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canonicalCidr, writtenAddress } from "./written-address.ts";

describe("an address in the place of a pool's name", () => {
  for (const [text, is, asIps] of [
    ["10.20.0.70", "an address", "10.20.0.70"],
    ["FD00:20::0070", "an address", "fd00:20::70"],
    ["10.20.0.70-10.20.0.72", "a range of addresses", "10.20.0.70-10.20.0.72"],
    ["10.20.0.70 - 10.20.0.72", "a range of addresses", "10.20.0.70-10.20.0.72"],
    ["10.20.0.70..10.20.0.72", "a range of addresses", "10.20.0.70-10.20.0.72"],
    ["fd00::1-FD00::5", "a range of addresses", "fd00::1-fd00::5"],
    ["10.20.0.70-72", "a range of addresses", "10.20.0.70-10.20.0.72"],
    ["10.20.0.70/24", "an address with a prefix", "10.20.0.70"],
    ["fd00:20::70/120", "an address with a prefix", "fd00:20::70"],
    ["10.20.0.300", "no IP address", undefined],
    ["010.20.0.70", "no IP address", undefined],
    ["10.20.0.70/99", "no IP address", undefined],
  ] as const) {
    it(`${text} is ${is}`, () => {
      assert.deepEqual(writtenAddress(text), asIps === undefined ? { is } : { is, asIps });
    });
  }

  for (const text of [
    "db",
    "db-2",
    "10-20",
    "v1.2",
    "10.20.0.0/24",
    "fd00::/64",
    "db/IPv4",
    "",
    "a".repeat(200),
  ])
    it(`${JSON.stringify(text.slice(0, 20))} may be a name, or the CIDR of a range`, () =>
      assert.equal(writtenAddress(text), undefined));
});

describe("a CIDR", () => {
  it("is that of a pool's range however it is written, unless it has host bits", () => {
    const texts = ["FD00:20:0::/120", "10.20.0.0/24", "10.20.0.7/24", "db", "db/IPv4"];
    assert.deepEqual(texts.map(canonicalCidr), [
      "fd00:20::/120",
      "10.20.0.0/24",
      "10.20.0.7/24",
      "db",
      "db/IPv4",
    ]);
  });
});
