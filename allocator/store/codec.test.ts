// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyClaim, anyPool, anyReservation, anyStoredBlock } from "../../test/api/records.ts";
import { BerthError } from "../base/errors.ts";
import { decodeRecord, encodeRecord, keyOf } from "./codec.ts";
import { addr, bareClaim, fullClaim, poolOf, reservationOf } from "./contract/samples.ts";
import type { Kind, Records } from "./store.ts";
import { claimText } from "./testing/claim-text.ts";

/** Any record of any kind, with its kind. */
const anyRecord: fc.Arbitrary<{ [K in Kind]: { kind: K; record: Records[K] } }[Kind]> = fc.oneof(
  anyPool.map((record) => ({ kind: "pool" as const, record })),
  anyClaim.map((record) => ({ kind: "claim" as const, record })),
  anyReservation.map((record) => ({ kind: "reservation" as const, record })),
  anyStoredBlock.map((record) => ({ kind: "block" as const, record })),
);

/** Decodes a text that must be refused, and gives the words. */
function refusal(kind: Kind, key: string, text: string): string {
  try {
    decodeRecord(kind, key, text);
  } catch (error) {
    assert.ok(error instanceof BerthError, String(error));
    assert.deepEqual([error.code, error.details], ["STATE_CORRUPT", { kind, key }]);
    return error.message;
  }
  return assert.fail(`decoded ${text}`);
}

describe("codec: records", () => {
  it("gives back exactly what was stored, for every record", () => {
    fc.assert(
      fc.property(anyRecord, ({ kind, record }) => {
        assert.deepEqual(decodeRecord(kind, keyOf(kind, record), encodeRecord(kind, record)), { record });
      }),
    );
  });

  it("gives back a claim with every field set, and with none", () => {
    for (const claim of [fullClaim("mysql-0"), bareClaim("mysql-0")]) {
      assert.deepEqual(decodeRecord("claim", "shop/mysql-0", encodeRecord("claim", claim)), {
        record: claim,
      });
    }
  });

  it("names its keys by kind", () => {
    assert.equal(keyOf("pool", poolOf("db")), "db");
    assert.equal(keyOf("claim", bareClaim("mysql-0")), "shop/mysql-0");
    assert.equal(keyOf("reservation", reservationOf(addr("fd00::1"))), "fd00::1");
  });

  it("stores a text with a version", () => {
    assert.equal(
      encodeRecord("reservation", reservationOf(addr("10.20.0.51"))),
      '{"v":1,"record":{"address":"10.20.0.51","pool":"db","claim":{"namespace":"shop","name":"mysql-0"},"nonce":"n1"}}',
    );
  });

  it("puts addresses into canonical form", () => {
    const text = claimText({
      addresses: ["10.20.0.51", "FD00:20:0::0051"],
      request: { addresses: ["::ffff:10.0.0.1"] },
    });
    const { record: claim } = decodeRecord("claim", "shop/mysql-0", text);
    assert.deepEqual(claim.addresses, ["10.20.0.51", "fd00:20::51"]);
    assert.deepEqual(claim.request.addresses, ["10.0.0.1"]);
    const own = JSON.stringify({ v: 1, record: { ...reservationOf(addr("fd00::1")), address: "FD00::1" } });
    assert.equal(decodeRecord("reservation", "fd00::1", own).record.address, "fd00::1");
  });

  it("refuses to store what it could not read back", () => {
    const lost = bareClaim("mysql-0", {
      retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: Number.NaN },
    });
    assert.throws(
      () => encodeRecord("claim", lost),
      (error) =>
        error instanceof BerthError &&
        error.code === "INTERNAL" &&
        error.message ===
          "claim shop/mysql-0 cannot be stored: claim.retention.ttlMs must be a number of milliseconds, not NaN",
    );
    for (const namespace of ["a/b", "", "a b", "\ud800"]) {
      assert.throws(
        () => encodeRecord("claim", { ...bareClaim("x"), namespace }),
        /namespace cannot be a name/,
      );
    }
  });
});

describe("codec: damage", () => {
  const rows: readonly [Readonly<Record<string, unknown>>, string][] = [
    [{ nonce: undefined }, "claim.nonce must be text, not undefined"],
    [{ status: undefined }, "claim.status must be an object, not undefined"],
    [{ identity: [] }, "claim.identity must be an object, not a list"],
    [
      { identity: { kind: "Pod", apiVersion: "v1", name: "a", ordinal: -1 } },
      "claim.identity.ordinal must be a whole number from 0, not -1",
    ],
    [{ request: { families: [4] } }, "claim.request.families[0] must be one of IPv4, IPv6, not 4"],
    [{ request: { pools: "db" } }, 'claim.request.pools must be a list, not "db"'],
    [
      { addresses: ["10.20.0.51", "10.20.0.051"] },
      'claim.addresses[1] must be an address, not "10.20.0.051"',
    ],
    [{ addresses: ["10.20.0.0/24"] }, 'claim.addresses[0] must be an address, not "10.20.0.0/24"'],
    [
      { retention: { whenDeleted: "Release", whenScaled: "Retain" } },
      "claim.retention.ttlMs must be a number of milliseconds, not undefined",
    ],
    [
      { retained: { since: "yesterday", because: "deleted" } },
      'claim.retained.since must be a number of milliseconds, not "yesterday"',
    ],
    [{ releasing: "false" }, 'claim.releasing must be true or false, not "false"'],
    [{ binding: null }, "claim.binding must be an object, not null"],
    [{ status: { message: 7 } }, "claim.status.message must be text, not 7"],
    [{ name: "mysql-1" }, "its text is that of shop/mysql-1"],
  ];
  for (const [changes, words] of rows) {
    it(`is told: ${words}`, () => {
      assert.equal(
        refusal("claim", "shop/mysql-0", claimText(changes)),
        `the stored claim shop/mysql-0 cannot be decoded: ${words}; restore it from a backup`,
      );
    });
  }

  it("is told of texts that are no record at all, and of other versions", () => {
    const record = poolOf("db");
    assert.match(
      refusal("pool", "db", ""),
      /^the stored pool db cannot be decoded: Unexpected end of JSON input;/,
    );
    assert.match(refusal("pool", "db", "[]"), /: its text must be an object, not a list;/);
    assert.match(refusal("pool", "db", JSON.stringify(record)), /: its version must be 1, not undefined;/);
    assert.match(refusal("pool", "db", JSON.stringify({ v: 2, record })), /: its version must be 1, not 2;/);
    assert.match(
      refusal("pool", "db", '{"v":1,"record":{"name":"db","spec":{}}}'),
      /: pool.spec is not that of a pool: spec.ranges is missing;/,
    );
    assert.match(
      refusal("pool", "db", '{"v":1,"record":{"__proto__":{"name":"db"}}}'),
      /: pool.name cannot be a name|: pool.name must be text, not undefined;/,
    );
  });

  it("is told for every text that was cut short", () => {
    fc.assert(
      fc.property(anyRecord, fc.nat(), ({ kind, record }, at) => {
        const text = encodeRecord(kind, record);
        refusal(kind, keyOf(kind, record), text.slice(0, at % text.length));
      }),
    );
  });

  it("never gives half a record: what decodes is stored again unchanged", () => {
    const anyChange = fc.tuple(fc.constantFrom(...Object.keys(fullClaim("x"))), fc.jsonValue());
    fc.assert(
      fc.property(anyChange, ([field, value]) => {
        const text = claimText({ [field]: value });
        let decoded: ReturnType<typeof decodeRecord<"claim">>;
        try {
          decoded = decodeRecord("claim", "shop/mysql-0", text);
        } catch (error) {
          assert.ok(error instanceof BerthError && error.code === "STATE_CORRUPT", String(error));
          return;
        }
        assert.deepEqual(
          decodeRecord("claim", "shop/mysql-0", encodeRecord("claim", decoded.record, decoded)),
          decoded,
        );
      }),
    );
  });
});
