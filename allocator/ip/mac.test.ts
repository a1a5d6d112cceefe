// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parseAddress } from "./address.ts";
import { addressOfMac, macOfAddress, parseMac } from "./mac.ts";

describe("MAC addresses", () => {
  it("are kept as the link-local addresses that they make", () => {
    for (const [mac, address] of [
      ["02:00:00:00:00:51", "fe80::ff:fe00:51"],
      ["00:16:3e:12:34:56", "fe80::216:3eff:fe12:3456"],
      ["fe:ff:ff:ff:ff:ff", "fe80::fcff:ffff:feff:ffff"],
    ] as const) {
      assert.equal(addressOfMac(mac), address);
      const read = parseAddress(address);
      assert.equal(read && macOfAddress(read), mac);
    }
  });

  it("come back as they were", () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(byte, byte, byte, byte, byte, byte), (bytes) => {
        const mac = parseMac(bytes.map((one) => one.toString(16).padStart(2, "0")).join(":"));
        if (mac !== undefined) assert.equal(macOfAddress(addressOfMac(mac)), mac);
      }),
    );
  });

  it("are those that an interface can have", () => {
    for (const text of ["02:AB:00:00:00:01", "02-ab-00-00-00-01", "02ab.0000.0001"])
      assert.equal(parseMac(text), "02:ab:00:00:00:01");
    for (const text of [
      "01:00:5e:00:00:01",
      "ff:ff:ff:ff:ff:ff",
      "00:00:00:00:00:00",
      "02-00-00-00-00:01",
      "020000000001",
      "02:00:00:00:00:00:00:01",
      "2:0:0:0:0:1",
    ])
      assert.equal(parseMac(text), undefined, text);
    for (const text of ["fe80::1", "fd00::ff:fe00:51", "10.0.0.1", "fe80:0:0:1::ff:fe00:51"]) {
      const address = parseAddress(text);
      assert.ok(address);
      assert.equal(macOfAddress(address), undefined, text);
    }
  });
});
