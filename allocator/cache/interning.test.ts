// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  NOW,
  reservationsOf,
  storedAs,
} from "../../test/support/fixtures.ts";
import type { Claim } from "../model/claim.ts";
import { RecordInterner } from "./interning.ts";

/** Another object with the same in it. */
function copy<T>(value: T): T {
  return structuredClone(value);
}

describe("RecordInterner", () => {
  it("keeps what is equal to what came, and gives it again", () => {
    const anyClaim: fc.Arbitrary<Claim> = fc
      .record(
        {
          identity: fc.record(
            {
              kind: fc.constantFrom("StatefulSet", "Pod"),
              apiVersion: fc.constant("v1"),
              name: fc.constant("a"),
              uid: fc.constant("u"),
              ordinal: fc.nat(3),
              slot: fc.nat(3),
            },
            { requiredKeys: ["kind", "apiVersion", "name"], noNullPrototype: true },
          ),
          request: fc.constantFrom({ pools: ["db"] }, { addresses: addrs("10.20.0.70") }, {}),
          admittedAt: fc.constantFrom(0, NOW),
          binding: fc.constantFrom(bindingTo("mysql-0", "node-a"), bindingTo("", "", { token: "t" })),
          status: fc.constantFrom<Claim["status"]>(
            {},
            { attachment: attachmentOf("mysql-0") },
            { message: "none is free" },
          ),
          retained: fc.constant({ since: NOW, because: "scaled" as const }),
          handMade: fc.constant(true),
          releasing: fc.constant(true),
          deleting: fc.constant(true),
          interface: fc.constant("net1"),
        },
        { requiredKeys: [], noNullPrototype: true },
      )
      .map((over) => claimRecord(over));
    const interner = new RecordInterner();
    fc.assert(
      fc.property(anyClaim, fc.boolean(), (claim, finalized) => {
        const stored = storedAs("claim", claim, finalized ? { finalizers: ["berth.dev/in-use"] } : {});
        for (const reservation of [undefined, ...reservationsOf(claim)]) {
          assert.deepEqual(interner.claim(copy(stored), reservation), stored);
        }
        for (const record of reservationsOf(claim)) {
          const more = finalized ? { releasedAt: NOW } : { marked: true };
          const taken = storedAs("reservation", { ...record, ...more });
          assert.deepEqual(interner.reservation(copy(taken), claim), taken);
          assert.deepEqual(interner.reservation(copy(taken)), taken);
        }
      }),
    );
  });

  it("keeps once what many have in common", () => {
    const interner = new RecordInterner();
    const claim = claimRecord({ request: { pools: ["db"] } });
    const one = interner.claim(storedAs("claim", claim)).record;
    const other = interner.claim(storedAs("claim", copy({ ...claim, name: "mysql-1", nonce: "n2" }))).record;
    assert.equal(other.request, one.request);
    assert.equal(other.retention, one.retention);
    assert.equal(other.status, one.status);
  });

  it("does not grow with what is different everywhere", () => {
    const interner = new RecordInterner();
    const claim = claimRecord({ request: { pools: ["db"] } });
    const first = interner.claim(storedAs("claim", claim)).record;
    for (let i = 0; i < 30_000; i++) {
      interner.claim(storedAs("claim", { ...claim, retention: { ...claim.retention, ttlMs: i } }));
    }
    const again = interner.claim(storedAs("claim", copy(claim))).record;
    assert.deepEqual(again, first);
    assert.notEqual(again.retention, first.retention, "what it had seen was forgotten");
  });
});
