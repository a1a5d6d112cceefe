// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, addrs, claimRecord } from "../../test/support/fixtures.ts";
import { addressesOn, formatHolding, interfacesOf, isSameInterfaces, parseAddresses } from "./interfaces.ts";

const [A, B] = [addr("10.20.0.51"), addr("10.30.0.51")];
const interfaces = { eth0: [A], net1: [B] };
const two = claimRecord({ addresses: [A, B], request: { addresses: [A, B], interfaces } });

describe("the interfaces of a claim", () => {
  it("have their own addresses, and others none", () => {
    assert.deepEqual(
      ["eth0", "net1", "net2", "constructor"].map((name) => addressesOn(two, name)),
      [[A], [B], [], []],
    );
    assert.equal(addressesOn(claimRecord(), "eth0"), undefined, "it names none");
  });

  it("have no address that the claim does not have", () => {
    assert.deepEqual(addressesOn({ ...two, addresses: [A] }, "net1"), []);
  });

  it("are told with the addresses, and read again", () => {
    assert.deepEqual(formatHolding(two), ["10.20.0.51@eth0", "10.30.0.51@net1"]);
    assert.deepEqual(parseAddresses(formatHolding(two)), { addresses: [A, B], interfaces });
    assert.deepEqual(parseAddresses(["10.20.0.51", "x", ""]), { addresses: [A] });
    assert.deepEqual(formatHolding(claimRecord({ addresses: [A] })), ["10.20.0.51"]);
  });

  it("are the same in any order, and of one pod those that it has", () => {
    assert.ok(isSameInterfaces(interfaces, { net1: [B], eth0: [A] }));
    assert.ok(!isSameInterfaces(interfaces, { eth0: [B], net1: [A] }));
    assert.ok(!isSameInterfaces(interfaces, undefined));
    assert.ok(isSameInterfaces(undefined, undefined));
    const both = { eth0: addrs("10.0.0.1", "10.0.0.2"), net1: addrs("10.0.1.2") };
    assert.deepEqual(interfacesOf(both, addrs("10.0.0.1")), { eth0: addrs("10.0.0.1") });
    const odd = Object.fromEntries([["constructor", addrs("10.0.0.1")]]);
    assert.deepEqual(interfacesOf(odd, addrs("10.0.0.1")), odd);
  });
});
