// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addrs, granted, refusalOf } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { isRefusal, type Refusal } from "../base/errors.ts";
import { type Claim, DEFAULT_RETENTION } from "../model/claim.ts";
import { decodeRecord, encodeRecord } from "../store/codec.ts";
import { readClaimRequest, unknownClaimField } from "./claim-spec.ts";
import { readObject } from "./kubernetes-object.ts";

function read(spec: unknown, metadata: unknown = { name: "mysql-0", namespace: "shop" }): Claim | Refusal {
  return readClaimRequest(
    granted(readObject({ apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata, spec })),
  );
}

describe("readClaimRequest", () => {
  it("refuses the name of an interface that stands for a MAC address", () => {
    const refusal = refusalOf(read({ interface: "mac-net1", request: { pools: ["db"] } }));
    assert.match(refusal, /spec\.interface "mac-net1" stands for a MAC address/);
  });

  it("fills in what is not said", () => {
    assert.deepEqual(read({ request: { pools: ["db"] } }), {
      namespace: "shop",
      name: "mysql-0",
      identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" },
      request: { pools: ["db"] },
      retention: DEFAULT_RETENTION,
      addresses: [],
      nonce: "",
      handMade: true,
      status: {},
    });
  });

  it("keeps what is said, addresses in canonical form", () => {
    const claim = granted(
      read({
        identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 },
        interface: "net1",
        takesOver: "licence",
        request: {
          addresses: ["::ffff:10.20.0.51", "FD00:20:0::51"],
          pools: ["db"],
          families: ["IPv6", "IPv4"],
        },
        retention: { whenDeleted: "Retain", whenScaled: "Release", ttl: "48h" },
      }),
    );
    assert.deepEqual(claim.request, {
      addresses: addrs("10.20.0.51", "fd00:20::51"),
      pools: ["db"],
      families: ["IPv6", "IPv4"],
    });
    assert.deepEqual(claim.retention, { whenDeleted: "Retain", whenScaled: "Release", ttlMs: 172_800_000 });
    assert.deepEqual(claim.identity, {
      kind: "StatefulSet",
      apiVersion: "apps/v1",
      name: "mysql",
      ordinal: 0,
    });
    assert.equal(claim.interface, "net1");
    assert.equal(claim.takesOver, "licence");
  });

  it("names an identity of a kind after the claim when it has no name", () => {
    const claim = granted(read({ identity: { kind: "VirtualMachineInstance" }, request: { pools: ["db"] } }));
    assert.deepEqual(claim.identity, { kind: "VirtualMachineInstance", apiVersion: "", name: "mysql-0" });
  });
});

describe("refusals of claims made by hand", () => {
  const db = { request: { pools: ["db"] } };
  const cases: readonly (readonly [string, unknown, string])[] = [
    ["addresses", { ...db, addresses: [] }, "spec.addresses is written by Berth; leave it out"],
    ["nonce", { ...db, nonce: "" }, "spec.nonce is written by Berth; leave it out"],
    ["binding", { ...db, binding: null }, "spec.binding is written by Berth; leave it out"],
    ["retained", { ...db, retained: {} }, "spec.retained is written by Berth; leave it out"],
    ["releasing", { ...db, releasing: false }, "spec.releasing is written by Berth; leave it out"],
    ["no spec", undefined, "spec.request names neither addresses nor pools; give it one of the two"],
    [
      "empty lists",
      { request: { addresses: [], pools: [] } },
      "spec.request names neither addresses nor pools; give it one of the two",
    ],
    [
      "families alone",
      { request: { families: ["IPv4"] } },
      "spec.request names neither addresses nor pools; give it one of the two",
    ],
    [
      "no address",
      { request: { addresses: ["mysql"] } },
      'spec.request.addresses[0] "mysql" is not an IP address',
    ],
    [
      "a number",
      { request: { addresses: ["10.0.0.1", 7] } },
      "spec.request.addresses[1] 7 is not an IP address",
    ],
    [
      "two of a family",
      { request: { addresses: ["10.0.0.1", "10.0.0.2"] } },
      "spec.request.addresses[1] is the second address of its family; a claim has one of each",
    ],
    [
      "an address that is no list, beside pools",
      { request: { addresses: "10.0.0.1", pools: ["db"] } },
      'spec.request.addresses takes a list, not "10.0.0.1"',
    ],
    ["pools that are no list", { request: { pools: "db" } }, 'spec.request.pools takes a list, not "db"'],
    [
      "a pool that is no name",
      { request: { pools: ["db", 5] } },
      "spec.request.pools[1] 5 is not the name of a pool",
    ],
    [
      "a pool without a name",
      { request: { pools: [""] } },
      'spec.request.pools[0] "" is not the name of a pool',
    ],
    [
      "families that are no list",
      { request: { pools: ["db"], families: "IPv4" } },
      'spec.request.families takes a list, not "IPv4"',
    ],
    [
      "a family that is none",
      { request: { pools: ["db"], families: ["IPv5"] } },
      "spec.request.families takes IPv4 and IPv6, each once",
    ],
    [
      "a family twice",
      { request: { pools: ["db"], families: ["IPv4", "IPv4"] } },
      "spec.request.families takes IPv4 and IPv6, each once",
    ],
    [
      "taking over from itself",
      { request: { addresses: ["10.0.0.1"] }, takesOver: "mysql-0" },
      "spec.takesOver names the claim itself; name the one that has the addresses now",
    ],
    [
      "taking over from another namespace",
      { request: { addresses: ["10.0.0.1"] }, takesOver: "bank/ledger" },
      'spec.takesOver "bank/ledger" is not the name of a claim of this namespace',
    ],
    [
      "taking over any address",
      { ...db, takesOver: "licence" },
      "spec.takesOver needs spec.request.addresses: name the addresses that go over",
    ],
    [
      "whenDeleted",
      { ...db, retention: { whenDeleted: "retain" } },
      "spec.retention.whenDeleted takes Release and Retain",
    ],
    [
      "whenScaled",
      { ...db, retention: { whenScaled: 1 } },
      "spec.retention.whenScaled takes Release and Retain",
    ],
    ["ttl", { ...db, retention: { ttl: "2 days" } }, "spec.retention.ttl is no duration such as 48h"],
    ["ttl as a number", { ...db, retention: { ttl: -5 } }, "spec.retention.ttl is no duration such as 48h"],
    [
      "slot",
      { ...db, identity: { kind: "Deployment", name: "web", slot: 0 } },
      "spec.identity.slot is given by Berth alone: a slot's claim cannot be made by hand; write the address into berth.dev/ips of the workload's template",
    ],
    [
      "ordinal",
      { ...db, identity: { kind: "StatefulSet", ordinal: 1.5 } },
      "spec.identity.ordinal takes 0, 1, 2 and so on",
    ],
  ];
  for (const [title, spec, words] of cases) {
    it(title, () => {
      assert.equal(refusalOf(read(spec)), `REQUEST_INVALID: ${words}`);
    });
  }

  it("an object that has no name, or one that cannot be a key", () => {
    for (const metadata of [
      null,
      { namespace: "shop" },
      { name: "a/b", namespace: "shop" },
      { name: "db" },
    ]) {
      assert.equal(
        refusalOf(read(db, metadata)),
        "OBJECT_INVALID: a claim needs metadata.name and metadata.namespace, in lower-case letters, digits, - and .",
      );
    }
  });
});

describe("any claim made by hand", () => {
  const junk = fc.anything({ maxDepth: 3 });
  const request = fc.record(
    {
      addresses: fc.oneof(fc.array(fc.constantFrom("10.0.0.1", "fd00::1", "x")), junk),
      pools: fc.oneof(fc.array(fc.constantFrom("db", "web", "")), junk),
      families: fc.oneof(fc.array(fc.constantFrom("IPv4", "IPv6")), junk),
    },
    { requiredKeys: [] },
  );
  const spec = fc.record(
    { request: fc.oneof(request, junk), retention: junk, identity: junk, interface: junk },
    { requiredKeys: [] },
  );

  it("is refused in words or can be stored as it is", () => {
    fc.assert(
      fc.property(spec, (given) => {
        const claim = read(given);
        if (isRefusal(claim)) return;
        assert.deepEqual(decodeRecord("claim", "shop/mysql-0", encodeRecord("claim", claim)), {
          record: claim,
        });
      }),
      { numRuns: runsOf(1_000) },
    );
  });
});

describe("unknownClaimField", () => {
  for (const [spec, words] of [
    [
      { request: { address: "10.20.0.51" } },
      'spec.request has an unknown field "address"; did you mean addresses?',
    ],
    [{ retention: { tll: "1h" } }, 'spec.retention has an unknown field "tll"; did you mean ttl?'],
    [{ retension: {} }, 'spec has an unknown field "retension"; did you mean retention?'],
    [{ identity: { cluster: "a" } }, 'spec.identity has an unknown field "cluster"; known here: kind, '],
  ] as const) {
    it(`names the field that was meant: ${words}`, () => {
      const object = { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata: { name: "a" }, spec };
      const refusal = unknownClaimField(granted(readObject(object)));
      assert.ok(refusal?.message.startsWith(words), refusal?.message);
    });
  }
});
