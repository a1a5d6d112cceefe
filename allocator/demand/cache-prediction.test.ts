// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  applicantOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  type Holdings,
  NOW,
  refusalOf,
  reservationRecord,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { requestFor, requestFromSpec } from "./build-request.ts";
import { predictFromCache } from "./cache-prediction.ts";

const entries = [addrs("10.20.0.70")];
const resolved = granted(requestFor(applicantOf({ request: { entries } })));
const clock = { now: () => NOW, monotonic: () => 0, sleep: async () => {} };

function foreseen(holdings: Holdings, allocation: AllocationRequest = resolved) {
  return predictFromCache({ view: viewOf({ pools: [DB_POOL], ...holdings }), clock }, allocation);
}

describe("what is foreseen of a reservation", () => {
  const claim = claimRecord();
  const reservations = reservationsOf(claim);

  it("is satisfied when claim and reservations are as they should be, however long nobody used them", () => {
    const old = claimRecord({ admittedAt: NOW - 3_600_000 });
    const got = foreseen({ claims: [old], reservations });
    assert.deepEqual(got.kind === "satisfied" && got.claim.record, old);
  });

  it("is to be tried when anything of it would be written", () => {
    const kind = (holdings: Holdings) => foreseen(holdings).kind;
    assert.equal(kind({}), "unknown");
    assert.equal(kind({ reservations }), "unknown"); // its own, left by a crash
    assert.equal(kind({ claims: [claim] }), "unknown"); // lost its reservation
    assert.equal(
      kind({ claims: [claim], reservations: [reservationRecord("10.20.0.70", { marked: true })] }),
      "unknown",
    );
    assert.equal(kind({ claims: [claimRecord({ releasing: true })], reservations }), "unknown");
    const retained = claimRecord({ retained: { since: NOW, because: "scaled" } });
    assert.equal(kind({ claims: [retained], reservations }), "unknown");
    const otherwise = claimRecord({ retention: { ...claim.retention, whenDeleted: "Retain" } });
    assert.equal(kind({ claims: [otherwise], reservations }), "unknown");
    const elsewhere = claimRecord({ addresses: addrs("10.20.0.71") });
    assert.equal(kind({ claims: [elsewhere], reservations: reservationsOf(elsewhere) }), "unknown");
  });

  it("is refused while another is seen to have the address, and not once that one's cooldown is over", () => {
    const other = { claim: { namespace: "shop", name: "other" }, nonce: "n2" };
    assert.match(
      refusalOf(foreseen({ reservations: [reservationRecord("10.20.0.70", other)] })),
      /^ADDRESS_TAKEN: address 10\.20\.0\.70 in pool "db" is held by shop\/other/,
    );
    const cooling = reservationRecord("10.20.0.70", { ...other, releasedAt: NOW - 29_999 });
    assert.match(refusalOf(foreseen({ reservations: [cooling] })), /^ADDRESS_TAKEN: .* is cooling down/);
    const cooled = reservationRecord("10.20.0.70", { ...other, releasedAt: NOW - 30_000 });
    assert.equal(foreseen({ reservations: [cooled] }).kind, "unknown");
  });

  it("is refused for what no plan can give, and for a namesake", () => {
    const outside = granted(requestFor(applicantOf({ request: { entries: [addrs("10.99.0.1")] } })));
    assert.match(refusalOf(foreseen({}, outside)), /^ADDRESS_OUTSIDE: /);
    const slot = claimRecord({
      identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
    });
    assert.match(
      refusalOf(foreseen({ claims: [slot] })),
      /^CLAIM_BUSY: the name of ordinal 0 is taken by claim shop\/mysql-0 of Deployment web, slot 0/,
    );
  });

  it("goes by what the author of a claim wrote, whatever it holds", () => {
    const namespace = { name: "shop", labels: {}, annotations: {} };
    const made = claimRecord({ handMade: true, binding: bindingTo("mysql-0", "node-a") });
    const own = (hand: typeof made) => requestFromSpec(hand, namespace, { token: "t", now: NOW });
    assert.equal(foreseen({ claims: [made], reservations }, own(made)).kind, "satisfied");
    const changed = claimRecord({ handMade: true, request: { addresses: addrs("10.20.0.71") } });
    assert.equal(foreseen({ claims: [changed], reservations }, own(changed)).kind, "unknown");
  });
});
