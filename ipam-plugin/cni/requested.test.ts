// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isCniError } from "./errors.ts";
import { Fields } from "./json-fields.ts";
import { readMac } from "./requested.ts";
import { argsOf } from "./testing/ipam-parts.ts";

function macOf(conf: object, args = ""): string | undefined {
  const mac = readMac(new Fields(conf), argsOf(args));
  return isCniError(mac) ? mac.msg : mac;
}

describe("the MAC address that an interface is going to have", () => {
  const [a, b, c] = ["02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"];

  it("is the one that the main plugin takes of several", () => {
    const runtimeConfig = { mac: a };
    const args = { cni: { mac: b } };
    for (const [conf, env, mac] of [
      [{ type: "bridge" }, "", undefined],
      [{ type: "bridge", runtimeConfig, args }, `MAC=${c}`, a],
      [{ type: "bridge", args }, `MAC=${c}`, b],
      [{ type: "bridge", mac: b }, "", undefined],
      [{ type: "macvlan", args }, `MAC=${c}`, c],
      [{ type: "macvlan", mac: b }, `MAC=${c}`, c],
      [{ type: "macvlan", mac: "02:00:00:00:00:0B" }, "", b],
      [{ type: "macvlan", runtimeConfig, mac: b }, `MAC=${c}`, a],
    ] as const)
      assert.equal(macOf(conf, env), mac, JSON.stringify([conf, env]));
  });

  it("is one that an interface can have", () => {
    assert.match(macOf({ type: "bridge" }, "MAC=01:00:5e:00:00:01") ?? "", /is no MAC address/);
    assert.match(macOf({ type: "bridge", runtimeConfig: { mac: 5 } }) ?? "", /cannot unmarshal number/);
  });
});
