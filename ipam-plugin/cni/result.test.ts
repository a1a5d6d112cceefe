// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Address } from "../../allocator/ip/address.ts";
import { type IpamResult, resultAnswer } from "./result.ts";
import { VERSIONS, type Version } from "./versions.ts";

const V4 = { address: "10.1.2.2" as Address, prefixLength: 24, gateway: "10.1.2.1" as Address };
const V6 = { address: "2001:db8:1::2" as Address, prefixLength: 64 };
const DUAL: IpamResult = {
  addresses: [V4, V6],
  routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }, { dst: "192.168.0.0/16", gw: "1.1.1.1", mtu: 1400 }],
  dns: { nameservers: ["10.1.2.53"] },
};

function answer(version: Version, result: IpamResult): unknown {
  return JSON.parse(resultAnswer(version, result));
}

describe("result", () => {
  it("up to 0.2.0 has one object per family, with the routes of that family", () => {
    for (const version of ["0.1.0", "0.2.0"] as const) {
      assert.deepEqual(answer(version, DUAL), {
        cniVersion: version,
        ip4: {
          ip: "10.1.2.2/24",
          gateway: "10.1.2.1",
          routes: [{ dst: "0.0.0.0/0" }, { dst: "192.168.0.0/16", gw: "1.1.1.1" }],
        },
        ip6: { ip: "2001:db8:1::2/64", routes: [{ dst: "::/0" }] },
        dns: { nameservers: ["10.1.2.53"] },
      });
    }
  });

  it("up to 0.2.0 drops routes of a family that has no address, and takes the first address of each", () => {
    assert.deepEqual(
      answer("0.2.0", { ...DUAL, addresses: [V6, { ...V6, address: "2001:db8:1::3" as Address }], dns: {} }),
      {
        cniVersion: "0.2.0",
        ip6: { ip: "2001:db8:1::2/64", routes: [{ dst: "::/0" }] },
        dns: {},
      },
    );
  });

  it("from 0.3.0 to 0.4.0 has a list whose version is text", () => {
    for (const version of ["0.3.0", "0.3.1", "0.4.0"] as const) {
      assert.deepEqual(answer(version, DUAL), {
        cniVersion: version,
        ips: [
          { version: "4", address: "10.1.2.2/24", gateway: "10.1.2.1" },
          { version: "6", address: "2001:db8:1::2/64" },
        ],
        routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }, { dst: "192.168.0.0/16", gw: "1.1.1.1" }],
        dns: { nameservers: ["10.1.2.53"] },
      });
    }
  });

  it("from 1.0.0 on has no version in it, and from 1.1.0 on metrics of routes", () => {
    const route = { dst: "0.0.0.0/0", mtu: 1400, advmss: 0, priority: 10, table: 0, scope: 0 };
    const result = { addresses: [V4], routes: [route], dns: {} };
    const ips = [{ address: "10.1.2.2/24", gateway: "10.1.2.1" }];
    assert.deepEqual(answer("1.0.0", result), {
      cniVersion: "1.0.0",
      ips,
      routes: [{ dst: "0.0.0.0/0" }],
      dns: {},
    });
    assert.deepEqual(answer("1.1.0", result), {
      cniVersion: "1.1.0",
      ips,
      routes: [{ dst: "0.0.0.0/0", mtu: 1400, priority: 10, table: 0, scope: 0 }],
      dns: {},
    });
  });

  it("never has interfaces, an empty gateway or empty routes", () => {
    for (const version of VERSIONS) {
      const text = resultAnswer(version, { addresses: [V6], routes: [], dns: {} });
      for (const word of ["interface", "gateway", "routes", "null"])
        assert.ok(!text.includes(word), `${version} ${word}`);
      assert.ok(text.endsWith("}\n"));
    }
  });
});
