// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { toldAs } from "../model/interfaces.ts";
import { readRequest } from "./annotations.ts";

const IPS = "berth.dev/ips";

/** What each pod is asked for, as it would be told. */
function readOf(value: string): string[] {
  const { entries = [], interfaces } = granted(readRequest({ [IPS]: value }));
  return entries.map((entry) => toldAs(entry, interfaces).join("+"));
}

describe("addresses with interfaces", () => {
  for (const [value, entries] of [
    ["10.20.0.51,10.30.0.51@net1", ["10.20.0.51@eth0+10.30.0.51@net1"]],
    ["10.30.0.51@net1", ["10.30.0.51@net1"]],
    ["10.20.0.51@eth0", ["10.20.0.51@eth0"]],
    [" 10.20.0.51 , 10.30.0.51 @ net1 ", ["10.20.0.51@eth0+10.30.0.51@net1"]],
    [
      "10.20.0.51/fd00::51,10.30.0.51/fd00:30::51@net1",
      ["10.20.0.51@eth0+fd00::51@eth0+10.30.0.51@net1+fd00:30::51@net1"],
    ],
    ["10.30.0.51@net1,fd00:30::51@net1", ["10.30.0.51@net1+fd00:30::51@net1"]],
    [
      "10.20.0.1-10.20.0.2,10.30.0.1-10.30.0.2@net-1.a",
      ["10.20.0.1@eth0+10.30.0.1@net-1.a", "10.20.0.2@eth0+10.30.0.2@net-1.a"],
    ],
    ["10.20.0.1,10.30.0.1@net1;10.20.0.2;", ["10.20.0.1@eth0+10.30.0.1@net1", "10.20.0.2@eth0"]],
    ["10.20.0.1;10.20.0.2", ["10.20.0.1", "10.20.0.2"]],
  ] as const) {
    it(`are read of ${value}`, () => assert.deepEqual(readOf(value), entries));
  }

  for (const [value, words] of [
    ["10.20.0.51@", /"10.20.0.51@" names no interface; write 10\.30\.0\.51@net1/],
    ["10.20.0.51@a@b", /names no interface/],
    ["10.20.0.51@net/1", /is not an IP address|names no interface/],
    ["10.20.0.51@this-name-is-too-long", /names no interface/],
    ["@net1", /entry 1, "", is not an IP address .* \(interface net1\)/],
    [
      "10.20.0.51/24@net1",
      /has a prefix; write "10\.20\.0\.51", for the pool says the prefix \(interface net1\)/,
    ],
    ["10.20.0.51@net1,10.20.0.52@net1", /two addresses of one family.* \(interface net1\)/],
    ["10.20.0.51,10.20.0.52,10.30.0.51@net1", /two addresses of one family.* \(interface eth0\)/],
    ["10.20.0.51,10.20.0.51@net1", /entry 1 has 10\.20\.0\.51 twice; an address is of one interface/],
    ["10.20.0.51@net1;10.20.0.51@net2", /entry 2 has 10\.20\.0\.51 again/],
    ["10.20.0.1-10.20.0.2,10.30.0.1@net1", /are not equally long/],
    [Array.from({ length: 9 }, (_, n) => `10.0.${n}.1@net${n}`).join(), /names more than 8 interfaces/],
    [Array.from({ length: 9 }, (_, n) => `10.0.${n}.1@net${n}`).join(";"), /names more than 8 interfaces/],
  ] as const) {
    it(`are refused of ${value.slice(0, 60)}`, () => {
      const message = refusalOf(readRequest({ [IPS]: value }));
      assert.match(message, /^REQUEST_INVALID/);
      assert.match(message, words);
    });
  }

  it("are not read where another will do, and do not contradict who means the first interface", () => {
    const calico = "cni.projectcalico.org/ipAddrs";
    assert.match(
      refusalOf(readRequest({ [IPS]: "10.0.0.1@net1", "berth.dev/fallback": "any" })),
      /annotation berth\.dev\/fallback: it cannot stand beside addresses of named interfaces/,
    );
    assert.ok(granted(readRequest({ [IPS]: "10.0.0.1@eth0", [calico]: '["10.0.0.1"]' })));
    for (const ips of ["10.0.0.1@net1", "10.0.0.1,10.0.1.1@net1"]) {
      assert.match(refusalOf(readRequest({ [IPS]: ips, [calico]: '["10.0.0.1"]' })), /disagrees with/);
    }
  });

  it("are an answer or a refusal, whatever is written, and nothing is of two interfaces", () => {
    const part = fc.constantFrom(
      "10.0.0.1",
      "10.0.0.2",
      "fd00::1",
      "@",
      "net1",
      "eth0",
      ",",
      ";",
      "/",
      "-",
      " ",
      "x",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
        const read = readRequest({ [IPS]: parts.join("") });
        if ("code" in read) return;
        const told = (read.entries ?? []).flatMap((entry) => toldAs(entry, read.interfaces));
        assert.equal(new Set(told.map((one) => one.split("@")[0])).size, told.length);
        assert.ok(read.interfaces === undefined || told.every((one) => one.includes("@")));
      }),
    );
  });
});
