// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, namespaceFacts, refusalOf } from "../../test/support/fixtures.ts";
import { requestsAddress } from "../model/address-request.ts";
import { readRequest } from "./annotations.ts";
import { entriesOf, IPS } from "./testing/entries.ts";

describe("berth.dev/ips", () => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ["10.20.0.51", ["10.20.0.51"]],
    ["FD00:20:0::51", ["fd00:20::51"]],
    ["::ffff:10.20.0.51", ["10.20.0.51"]],
    ["10.20.0.51,fd00::51", ["10.20.0.51+fd00::51"]],
    ["fd00::51/10.20.0.51", ["fd00::51+10.20.0.51"]],
    [" 10.20.0.51 , fd00::51 ", ["10.20.0.51+fd00::51"]],
    ["10.20.0.51;10.20.0.52", ["10.20.0.51", "10.20.0.52"]],
    ["10.20.0.51; 10.20.0.52;", ["10.20.0.51", "10.20.0.52"]],
    ["10.20.0.51/fd00::51;10.20.0.52/fd00::52", ["10.20.0.51+fd00::51", "10.20.0.52+fd00::52"]],
    ["10.20.0.9-10.20.0.11", ["10.20.0.9", "10.20.0.10", "10.20.0.11"]],
    ["10.20.0.255-10.20.1.0;10.20.0.7", ["10.20.0.255", "10.20.1.0", "10.20.0.7"]],
    ["fd00::f-fd00::10", ["fd00::f", "fd00::10"]],
    ["10.20.0.1-10.20.0.2/fd00::a-fd00::b", ["10.20.0.1+fd00::a", "10.20.0.2+fd00::b"]],
    [
      "10.20.0.1-10.20.0.2,fd00::a-fd00::b;10.20.0.9",
      ["10.20.0.1+fd00::a", "10.20.0.2+fd00::b", "10.20.0.9"],
    ],
    ["10.20.0.5-10.20.0.5", ["10.20.0.5"]],
  ];
  for (const [value, entries] of cases) {
    it(`reads ${value}`, () => {
      assert.deepEqual(entriesOf({ [IPS]: value }), entries);
    });
  }

  it("takes exactly 1024 entries and not one more", () => {
    assert.equal(entriesOf({ [IPS]: "10.20.0.0-10.20.3.255" }).length, 1024);
    const tooMany = `REQUEST_INVALID: annotation ${IPS}: it has more than 1024 entries`;
    assert.equal(refusalOf(readRequest({ [IPS]: "10.20.0.0-10.20.4.0" })), tooMany);
    assert.equal(refusalOf(readRequest({ [IPS]: "10.20.0.0-10.20.3.255;10.20.4.0" })), tooMany);
    assert.equal(refusalOf(readRequest({ [IPS]: "fd00::-fd00:ffff::" })), tooMany);
  });
});

describe("what the annotations say besides addresses", () => {
  const cases: readonly (readonly [Readonly<Record<string, string>>, unknown])[] = [
    [{}, {}],
    [{ "other.example/ips": "junk" }, {}],
    [{ "berth.dev/pools": "db" }, { pools: ["db"] }],
    [{ "berth.dev/pools": " db6 , ,db" }, { pools: ["db6", "db"] }],
    [{ "berth.dev/pools": "10.20.0.0/24" }, { pools: ["10.20.0.0/24"] }],
    [{ "berth.dev/sticky": "true" }, { sticky: true }],
    [{ "berth.dev/sticky": "false" }, {}],
    [{ "berth.dev/families": "IPv6" }, { families: ["IPv6"] }],
    [{ "berth.dev/families": "IPv4, IPv6" }, { families: ["IPv4", "IPv6"] }],
    [{ "berth.dev/when-deleted": "Retain" }, { retention: { whenDeleted: "Retain" } }],
    [
      { "berth.dev/when-deleted": "Retain", "berth.dev/when-scaled": "Release", "berth.dev/ttl": "1h30m" },
      { retention: { whenDeleted: "Retain", whenScaled: "Release", ttlMs: 5_400_000 } },
    ],
    [{ "berth.dev/ttl": "0" }, { retention: { ttlMs: 0 } }],
  ];
  for (const [annotations, request] of cases) {
    it(`reads ${JSON.stringify(annotations)}`, () => {
      assert.deepEqual(readRequest(annotations), request);
    });
  }
});

describe("the request of a pod in a namespace with defaults", () => {
  const shop = namespaceFacts("shop", {
    "berth.dev/pools": "db",
    "berth.dev/sticky": "true",
    [IPS]: "10.20.0.51",
    "berth.dev/ttl": "5m",
  });

  it("is for a silent pod what its namespace asks for and how long it is kept, but no address", () => {
    assert.deepEqual(readRequest({ app: "mysql" }, shop), {
      pools: ["db"],
      sticky: true,
      retention: { ttlMs: 300_000 },
    });
    assert.deepEqual(readRequest({}, namespaceFacts("bank")), {});
  });

  it("is its own if it asks for something itself, or cannot be read", () => {
    for (const own of [{ [IPS]: "10.20.0.7" }, { "berth.dev/pools": "web" }, { [IPS]: "junk" }]) {
      assert.deepEqual(readRequest(own, shop), readRequest(own));
    }
  });

  it("does not overrule a pod that says that it does not want to be sticky", () => {
    const request = granted(readRequest({ "berth.dev/sticky": "false" }, shop));
    assert.deepEqual(request, { pools: ["db"], retention: { ttlMs: 300_000 } });
  });

  it("is beside what another system's word says of keeping it, which asks for nothing by itself", () => {
    const own = { "networking.alibaba.com/ip-retain": "true" };
    const kept = { pools: ["db"], sticky: true, retention: { ttlMs: 300_000 } };
    assert.deepEqual(readRequest(own, shop), kept);
    const unkept = namespaceFacts("shop", { ...shop.annotations, "berth.dev/sticky": "false" });
    assert.deepEqual(readRequest(own, unkept), kept);
    const { sticky: _, ...released } = kept;
    assert.deepEqual(readRequest({ "networking.alibaba.com/ip-retain": "false" }, shop), released);
    assert.deepEqual(readRequest({ ...own, "berth.dev/sticky": "true" }, shop), { sticky: true });
    assert.deepEqual(readRequest(own, namespaceFacts("bank")), { sticky: true });
  });

  it("adds to families and retention, which ask for nothing alone", () => {
    const own = { "berth.dev/families": "IPv4", "berth.dev/ttl": "1h" };
    assert.equal(requestsAddress(granted(readRequest(own))), false);
    assert.deepEqual(readRequest(own, shop), {
      pools: ["db"],
      sticky: true,
      families: ["IPv4"],
      retention: { ttlMs: 3_600_000 },
    });
  });
});
