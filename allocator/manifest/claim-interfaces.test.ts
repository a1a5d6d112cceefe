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
    ["two of a family", { interfaces: { net1: addresses } }, /net1 has two addresses of one family/],
    [
      "one twice",
      { interfaces: { eth0: addresses.slice(1), net1: addresses.slice(1) } },
      /10\.30\.0\.51 twice/,
    ],
    ["one without", { interfaces: { net1: addresses.slice(1) } }, /says no interface of 10\.20\.0\.51/],
    [
      "a fallback",
      { interfaces: { eth0: addresses.slice(0, 1), net1: addresses.slice(1) }, fallback: "any" },
      /fallback cannot stand beside interfaces/,
    ],
  ] as const) {
    it(`are refused: ${what}`, () => {
      assert.match(refusalOf(readClaimRequest(claimWith({ addresses, ...request }))), words);
    });
  }

  it("are no more than there can be addresses", () => {
    const many = Array.from({ length: 17 }, (_, n) => `10.0.0.${n + 1}`);
    assert.match(
      refusalOf(readClaimRequest(claimWith({ addresses: many, interfaces: { net1: many } }))),
      /has more than 16 addresses/,
    );
  });
});
