// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../test/support/any-character.ts";
import type { Claim, ClaimStatus } from "../model/claim.ts";
import { phaseOf } from "../model/phase.ts";
import { decodeRecord, encodeRecord } from "./codec.ts";
import { addr, fullClaim, poolOf, reservationOf } from "./contract/samples.ts";
import { claimText } from "./testing/claim-text.ts";

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
    const anyName = fc.string({ unit: anyCharacter, minLength: 1 }).map((name) => `x${name}`);
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
