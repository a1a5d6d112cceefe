// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyAddress, anyClaim, anyPool, anyReservation, anyStoredBlock } from "../../test/api/records.ts";
import { BerthError } from "../base/errors.ts";
import { familyOf } from "../ip/address.ts";
import type { Claim, ClaimStatus } from "../model/claim.ts";
import { phaseOf } from "../model/phase.ts";
import { addressOfName, decodeRecord, encodeRecord, keyOf, reservationName } from "./codec.ts";
import { addr, bareClaim, fullClaim, poolOf, reservationOf } from "./contract/samples.ts";
import type { Kind, Records } from "./store.ts";

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

/** What a stored full claim says, with some of it exchanged; undefined takes a field away. */
function claimText(changes: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ v: 1, record: { ...fullClaim("mysql-0"), ...changes } });
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

describe("codec: what a newer version wrote", () => {
  const { binding, retention, status } = fullClaim("mysql-0");
  const { attachment } = status;
  const newer = {
    vlan: 7,
    identity: { ...fullClaim("mysql-0").identity, cluster: { name: "east" } },
    request: { families: ["IPv4", "IPv8"], zone: "a" },
    retention: { ...retention, whenDeleted: "Archive", limit: 3 },
    binding: { ...binding, fencedBy: null },
    retained: { since: 1_700_000_000_001, because: "moved" },
    status: { phase: "Quarantined", attachment: { ...attachment, cgroup: "/kubepods/x" }, seen: [1, 2] },
  };
  const decoded = () => decodeRecord("claim", "shop/mysql-0", claimText(newer));
  const rewritten = (next: Claim, seen = decoded()) =>
    JSON.parse(encodeRecord("claim", next, seen)).record as Readonly<Record<string, unknown>>;

  it("is read past: the record has what is known", () => {
    const { record } = decoded();
    assert.deepEqual(record, {
      ...fullClaim("mysql-0"),
      request: { families: ["IPv4"] },
      retention: { whenDeleted: "Retain", whenScaled: "Release", ttlMs: null },
      retained: { since: 1_700_000_000_001, because: "scaled" },
      status: { attachment },
    });
  });

  it("is written back by a replace that does not touch it", () => {
    const { record } = decoded();
    const written = rewritten({ ...record, admittedAt: 1_800_000_000_000, addresses: [] });
    assert.deepEqual(written, {
      ...fullClaim("mysql-0"),
      ...newer,
      status: { ...newer.status, phase: "Attached" },
      admittedAt: 1_800_000_000_000,
      addresses: [],
    });
  });

  it("gives way to a value that is written here", () => {
    const { record } = decoded();
    const own: Claim = {
      ...record,
      request: { pools: ["db"] },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: 1 },
      status: {},
    };
    const written = rewritten(own);
    assert.deepEqual(written["request"], { pools: ["db"], zone: "a" });
    assert.deepEqual(written["retention"], { ...own.retention, limit: 3 });
    assert.deepEqual(written["status"], { phase: phaseOf(own), seen: [1, 2] });
  });

  it("is written with a phase, which earlier versions want, and read without it", () => {
    const claim = fullClaim("mysql-0");
    const text = encodeRecord("claim", claim);
    assert.deepEqual(JSON.parse(text).record.status, { phase: "Attached", ...claim.status });
    assert.deepEqual(decodeRecord("claim", "shop/mysql-0", text).record, claim);
  });

  it("goes with the pod, the sandbox and the time that it says something of", () => {
    const { record } = decoded();
    const another = { ...binding, podUID: "p-2" };
    assert.deepEqual(rewritten({ ...record, binding: another })["binding"], another);
    const later = { since: 1_800_000_000_000, because: "scaled" } as const;
    assert.deepEqual(rewritten({ ...record, retained: later })["retained"], later);
    const next = { ...attachment, containerID: "c2" };
    const { attachment: written } = rewritten({ ...record, status: { attachment: next } })[
      "status"
    ] as ClaimStatus;
    assert.deepEqual(written, next);
    const { binding: _, ...unbound } = record;
    assert.equal(rewritten(unbound)["binding"], undefined);
  });

  it("stays with a reservation as long as its holder does", () => {
    const held = reservationOf(addr("10.20.0.51"));
    const text = JSON.stringify({ v: 1, record: { ...held, lease: "l1" } });
    const seen = decodeRecord("reservation", "10.20.0.51", text);
    assert.deepEqual(seen.record, held);
    const cooling = encodeRecord("reservation", { ...held, releasedAt: 5 }, seen);
    assert.deepEqual(JSON.parse(cooling).record, { ...held, releasedAt: 5, lease: "l1" });
    const taken = encodeRecord("reservation", { ...held, nonce: "n2" }, seen);
    assert.deepEqual(JSON.parse(taken).record, { ...held, nonce: "n2" });
  });

  it("is left in a pool, whose spec somebody else writes", () => {
    const pool = { ...poolOf("db").spec, mtu: 9000, limits: { perNamespace: 3, perPod: 2 } };
    const text = JSON.stringify({ v: 1, record: { name: "db", spec: pool } });
    const { record } = decodeRecord("pool", "db", text);
    assert.deepEqual(JSON.parse(encodeRecord("pool", record)).record, { name: "db", spec: pool });
  });

  it("is kept for every field of every name, wherever it stands", () => {
    const places = ["", "identity", "request", "retention", "binding", "retained", "status"] as const;
    const anyName = fc.string({ unit: "binary", minLength: 1 }).map((name) => `x${name}`);
    fc.assert(
      fc.property(fc.constantFrom(...places), anyName, fc.jsonValue(), (place, name, value) => {
        const claim: Claim = fullClaim("mysql-0");
        const raw =
          place === ""
            ? { ...claim, [name]: value }
            : { ...claim, [place]: { ...claim[place], [name]: value } };
        const seen = decodeRecord("claim", "shop/mysql-0", JSON.stringify({ v: 1, record: raw }));
        assert.deepEqual(seen.record, claim);
        const { status } = raw;
        const whole = { ...raw, status: { phase: phaseOf(claim), ...status } };
        assert.deepEqual(rewritten(seen.record, seen), JSON.parse(JSON.stringify(whole)));
      }),
    );
  });
});

describe("codec: object names", () => {
  const rows: readonly [string, string][] = [
    ["10.20.0.51", "10.20.0.51"],
    ["0.0.0.0", "0.0.0.0"],
    ["2001:db8::1", "2001-0db8-0000-0000-0000-0000-0000-0001"],
    ["::", "0000-0000-0000-0000-0000-0000-0000-0000"],
    ["fd00:20::51", "fd00-0020-0000-0000-0000-0000-0000-0051"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff-ffff-ffff-ffff-ffff-ffff-ffff-ffff"],
  ];
  for (const [address, name] of rows) {
    it(`${address} is ${name} and back`, () => {
      assert.equal(reservationName(addr(address)), name);
      assert.equal(addressOfName(name), address);
    });
  }

  it("are DNS subdomains, differ for different addresses, and lead back", () => {
    fc.assert(
      fc.property(anyAddress, (address) => {
        const name = reservationName(address);
        assert.match(name, /^[a-z0-9]+(?:[-.][a-z0-9]+)*$/);
        assert.equal(addressOfName(name), address);
        assert.equal(name.includes("-"), familyOf(address) === "IPv6");
      }),
    );
  });

  it("have one form only", () => {
    const others = [
      "",
      "db",
      "fd00::1",
      "fd00-20--51",
      "FD00-0020-0000-0000-0000-0000-0000-0051",
      "10-20-0-51",
    ];
    const mapped = "0000-0000-0000-0000-0000-ffff-0a14-0033";
    for (const name of [...others, mapped, "010.20.0.51", "10.20.0.51-"])
      assert.equal(addressOfName(name), undefined, name);
  });
});
