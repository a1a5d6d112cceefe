// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, granted, refusalOf } from "../../test/support/fixtures.ts";
import { readClaimRequest, unknownClaimField } from "./claim-spec.ts";
import { type KubeObject, readObject } from "./kubernetes-object.ts";

const addresses = ["10.20.0.51", "10.30.0.51"];

function claimWith(request: Readonly<Record<string, unknown>>): KubeObject {
  const metadata = { namespace: "shop", name: "scanner" };
  return granted(
    readObject({ apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata, spec: { request } }),
  );
}

describe("the interfaces of a claim made by hand", () => {
  it("are read, with an address of each family on each", () => {
    const interfaces = { eth0: addrs("10.20.0.51", "fd00::51"), net1: addrs("10.30.0.51") };
    const object = claimWith({ addresses: [...addresses, "fd00::51"], interfaces });
    assert.deepEqual(granted(readClaimRequest(object)).request, {
      addresses: addrs(...addresses, "fd00::51"),
      interfaces,
    });
    assert.equal(unknownClaimField(object), undefined);
    assert.equal(unknownClaimField(claimWith({ addresses: ["10.20.0.51"], fallback: "any" })), undefined);
  });

  for (const [what, request, words] of [
    ["a list", { interfaces: ["net1"] }, /interfaces takes addresses by interface/],
    ["no name", { interfaces: { "net/1": addresses } }, /is not the name of an interface/],
    ["no list", { interfaces: { net1: "10.30.0.51" } }, /interfaces\.net1 takes a list/],
    ["nothing", { interfaces: { eth0: addresses.slice(0, 1), net1: [] } }, /net1 has no address/],
    ["no address", { interfaces: { net1: ["x"] } }, /which is not an IP address/],
    [
      "another's",
      { interfaces: { net1: ["10.30.0.52"] } },
      /10\.30\.0\.52, which spec\.request\.addresses lacks/,
    ],
    [
      "one twice",
      { interfaces: { eth0: addresses.slice(1), net1: addresses.slice(1) } },
      /10\.30\.0\.51 twice/,
    ],
    ["one without", { interfaces: { net1: addresses.slice(1) } }, /says no interface of 10\.20\.0\.51/],
    [
      "a fallback",
      { interfaces: { net1: addresses }, fallback: "any" },
      /fallback cannot stand beside several addresses of one family/,
    ],
  ] as const) {
    it(`are refused: ${what}`, () => {
      assert.match(refusalOf(readClaimRequest(claimWith({ addresses, ...request }))), words);
    });
  }

  it("may have several addresses of one family, and pools", () => {
    const interfaces = { net1: addresses };
    assert.deepEqual(granted(readClaimRequest(claimWith({ addresses, interfaces }))).request, {
      addresses,
      interfaces,
    });
    const interfacePools = { eth0: ["db"], net1: [] };
    const many = Array.from({ length: 9 }, (_, n) => [`net${n}`, ["db"]] as const);
    assert.deepEqual(granted(readClaimRequest(claimWith({ interfacePools }))).request, { interfacePools });
    for (const [request, words] of [
      [{ interfacePools: ["db"] }, /takes pools by interface/],
      [{ interfacePools: { net1: "db" } }, /net1 takes a list of names/],
      [{ interfacePools: { "net/1": ["db"] } }, /is not the name of an interface/],
      [{ interfacePools: {} }, /names no interface/],
      [{ interfacePools: Object.fromEntries(many) }, /has more than 8 interfaces/],
      [{ interfacePools, pools: ["db"] }, /cannot stand beside spec\.request\.pools/],
      [{ interfacePools, addresses: addresses.slice(1) }, /needs the interfaces of spec\.request\.addresses/],
    ] as const)
      assert.match(refusalOf(readClaimRequest(claimWith(request))), words);
  });

  it("are refused by their names where those stand for MAC addresses", () => {
    const own = addresses.slice(1);
    for (const [request, words] of [
      [
        { addresses: own, interfaces: { "mac-net1": own } },
        /request\.interfaces: interface "mac-net1" stands for a MAC address and gets no address 10\.30\.0\.51; ask for it on "net1"$/,
      ],
      [
        { interfacePools: { "mac-net1": ["db"] } },
        /request\.interfacePools: interface "mac-net1" stands for/,
      ],
      [{ interfacePools: { "mac-net1": [] } }, /request\.interfacePools: interface "mac-net1" stands for/],
    ] as const)
      assert.match(refusalOf(readClaimRequest(claimWith(request))), words);
    const mac = ["fe80::ff:fe00:51"];
    const pinned = { addresses: [...own, ...mac], interfaces: { net1: own, "mac-net1": mac } };
    assert.deepEqual(granted(readClaimRequest(claimWith(pinned))).request, pinned);
  });

  it("and lists are counted before an entry of them is read", () => {
    /** Any look at an entry fails. */
    const unread = (length: number) =>
      new Proxy(Array.from({ length }), {
        get: (list, key) => {
          assert.ok(typeof key === "symbol" || !/^\d+$/.test(key), `entry ${String(key)} is read`);
          return Reflect.get(list, key);
        },
      });
    const byName = (count: number, value: unknown) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`net${n}`, value]));
    const own = addresses.slice(0, 1);
    for (const [request, words] of [
      [{ addresses: unread(17) }, /addresses has more than 16 addresses/],
      [{ pools: unread(257) }, /pools has more than 256 pools/],
      [{ addresses: own, interfaces: byName(9, unread(1)) }, /interfaces has more than 8 interfaces/],
      [{ addresses: own, interfaces: { net1: unread(17) } }, /net1 has more than 16 addresses/],
      [{ interfacePools: byName(9, unread(1)) }, /interfacePools has more than 8 interfaces/],
      [{ interfacePools: { net1: unread(257) } }, /net1 has more than 256 pools/],
    ] as const)
      assert.match(refusalOf(readClaimRequest(claimWith(request))), words);
  });

  it("are no more than there can be addresses", () => {
    const many = Array.from({ length: 17 }, (_, n) => `10.0.0.${n + 1}`);
    assert.match(
      refusalOf(readClaimRequest(claimWith({ addresses: many, interfaces: { net1: many } }))),
      /has more than 16 addresses/,
    );
  });
});
