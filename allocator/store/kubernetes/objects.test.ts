// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyAddress, anyClaim, anyPool, anyReservation, anyStoredBlock } from "../../../test/api/records.ts";
import type { Claim } from "../../model/claim.ts";
import { keyOf } from "../codec.ts";
import { addr, bareClaim, fullClaim, reservationOf } from "../contract/samples.ts";
import type { Kind, Records } from "../store.ts";
import { keyOfPlace, placeOf, specOf, storedOf } from "./objects.ts";
import { itemOf } from "./testing/items.ts";

describe("objects of records", () => {
  const cases: readonly (readonly [Kind, fc.Arbitrary<Records[Kind]>])[] = [
    ["pool", anyPool],
    ["claim", anyClaim],
    ["reservation", anyReservation],
    ["block", anyStoredBlock],
  ];
  for (const [kind, any] of cases) {
    it(`give back every ${kind}`, () => {
      fc.assert(
        fc.property(any, (record) => {
          const stored = storedOf(kind, itemOf(kind, record));
          const createdAt = Date.UTC(2026, 0, 1);
          assert.deepEqual(stored, {
            key: keyOf(kind, record),
            record,
            uid: "u-1",
            revision: "7",
            createdAt,
          });
        }),
      );
    });
  }

  it("are as people read them: durations and times in words, the status apart", () => {
    const spec = specOf("claim", fullClaim("mysql-0"));
    assert.deepEqual(spec["retention"], { whenDeleted: "Retain", whenScaled: "Release", ttl: "24h0m0s" });
    assert.deepEqual(spec["retained"], { since: "2023-11-14T22:13:20.001Z", because: "scaled" });
    assert.equal(spec["admittedAt"], "2023-11-14T22:13:20.003Z");
    assert.deepEqual([spec["namespace"], spec["name"], spec["status"]], [undefined, undefined, undefined]);
    const cooling = specOf("reservation", reservationOf(addr("10.20.0.51"), { releasedAt: 0 }));
    assert.equal(cooling["releasedAt"], "1970-01-01T00:00:00.000Z");
  });

  it("are not made of records that could not be read again", () => {
    const claim = { ...bareClaim("a"), retention: { whenDeleted: "Never" } } as unknown as Claim;
    assert.throws(() => specOf("claim", claim), {
      code: "INTERNAL",
      message: /^claim shop\/a cannot be stored: claim.retention.whenDeleted must be one of Release, Retain/,
    });
  });
});

describe("names of objects", () => {
  it("stand for keys", () => {
    assert.deepEqual(placeOf("pool", "db"), { name: "db" });
    assert.deepEqual(placeOf("claim", "shop/mysql-0"), { namespace: "shop", name: "mysql-0" });
    assert.deepEqual(placeOf("reservation", "fd00:20::51"), {
      name: "fd00-0020-0000-0000-0000-0000-0000-0051",
    });
    fc.assert(
      fc.property(anyAddress, (address) => {
        const place = placeOf("reservation", address);
        assert.ok(place);
        assert.match(place.name, /^[0-9a-f.-]{7,39}$/);
        assert.equal(keyOfPlace("reservation", place), address);
      }),
    );
  });

  it("of blocks are that of the first address, and the prefix length", () => {
    assert.deepEqual(placeOf("block", "10.30.4.0/26"), { name: "10.30.4.0-26" });
    const name = "fd00-0020-0000-0000-0000-0000-0000-0040-122";
    assert.deepEqual(placeOf("block", "fd00:20::40/122"), { name });
    assert.equal(keyOfPlace("block", { name }), "fd00:20::40/122");
    for (const key of ["10.30.4.1/26", "10.30.4.0", "10.30.4.0/33", "FD00:20::40/122", "db", ""])
      assert.equal(placeOf("block", key), undefined, key);
    for (const other of [
      "10.30.4.1-26",
      "10.30.4.0",
      "10.30.4.0-026",
      "fd00-20-122",
      "10.30.4.0-33",
      "-26",
      "",
    ])
      assert.equal(keyOfPlace("block", { name: other }), undefined, other);
    fc.assert(
      fc.property(anyStoredBlock, ({ cidr }) => {
        const place = placeOf("block", cidr);
        assert.ok(place);
        assert.match(place.name, /^[0-9a-f.-]{9,43}$/);
        assert.equal(keyOfPlace("block", place), cidr);
      }),
    );
  });

  it("are only those that Kubernetes takes", () => {
    for (const key of ["", "Db", "a/b", "a_b", "..", "-a", "a.", "x".repeat(254)]) {
      assert.equal(placeOf("pool", key), undefined, key);
    }
    for (const key of ["a", "/a", "a/", "a/b/c", "a/../b", "A/b"]) {
      assert.equal(placeOf("claim", key), undefined, key);
    }
    assert.equal(placeOf("reservation", "db"), undefined);
    assert.equal(keyOfPlace("reservation", { name: "db" }), undefined);
    assert.equal(keyOfPlace("claim", { name: "db" }), undefined);
  });
});
