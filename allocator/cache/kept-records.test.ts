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
import type { Stored } from "../store/store.ts";
import { KeptRecords } from "./kept-records.ts";
import { ClaimPacking, ReservationPacking } from "./packed-records.ts";

/** Texts that Kubernetes would refuse too: other stores have no schema. */
const text = fc.oneof(fc.constantFrom("", "a", "a\nb", "\t", ",", "ü"), fc.string());
const time = fc.oneof(fc.integer(), fc.constantFrom(0, -0, NOW, NOW + 1, 1.5, 2 ** 41));

/** Any of these fields, or none. */
const some: { requiredKeys: []; noNullPrototype: true } = { requiredKeys: [], noNullPrototype: true };

const identity = fc
  .record({ uid: text, ordinal: fc.nat(3), slot: fc.nat(3) }, some)
  .chain((more) => text.map((name) => ({ kind: "StatefulSet", apiVersion: "apps/v1", name, ...more })));

const binding = fc
  .record({ token: text, podUID: text, node: text, interface: text, since: time }, some)
  .map((over) => bindingTo("mysql-0", "node-a", over));

const attachment = fc
  .record({ containerID: text, netns: text, bootID: text, since: time, detached: fc.boolean() }, some)
  .map((over) => ({ ...attachmentOf("mysql-0"), ...over }));

const status = fc.oneof(
  fc.constantFrom<Claim["status"]>({}, { message: "none is free" }),
  attachment.map((one): Claim["status"] => ({ attachment: one })),
);

const anyClaim: fc.Arbitrary<Claim> = fc
  .record(
    {
      ...{ identity, binding, status, nonce: text },
      addresses: fc.constantFrom([], addrs("10.20.0.70"), addrs("10.20.0.70", "fd00::1")),
      interfaces: fc.constant({ eth0: addrs("10.20.0.70") }),
      request: fc.constantFrom<Claim["request"]>(
        {},
        { pools: ["db"] },
        { addresses: [] },
        { addresses: addrs("10.20.0.70"), fallback: "any" },
      ),
      admittedAt: time,
      retained: time.map((since) => ({ since, because: "scaled" as const })),
      ...{ handMade: fc.constant(true), releasing: fc.constant(true), deleting: fc.constant(true) },
      ...{ interface: text, takesOver: fc.constant("mysql-1") },
    },
    some,
  )
  .map((over) => claimRecord(over));

const beside = fc.record(
  {
    ...{ uid: text, revision: text, createdAt: time },
    finalizers: fc.constant(["berth.dev/in-use"]),
    unknown: fc.constant([{ path: ["status"], key: "phase", value: "Later", takenFor: "Pending" }]),
  },
  some,
);

/** Another object with the same in it. */
function copy<T>(value: T): T {
  return structuredClone(value);
}

describe("records that are kept", () => {
  it("come out as they went in, claims and reservations", () => {
    const claims = new KeptRecords(new ClaimPacking());
    const reservations = new KeptRecords(new ReservationPacking());
    const releases = fc.record({ marked: fc.constant(true), releasedAt: time }, some);
    fc.assert(
      fc.property(anyClaim, beside, releases, (claim, more, released) => {
        const stored = storedAs("claim", claim, more);
        claims.set(copy(stored));
        assert.deepEqual(claims.get(stored.key), stored);
        for (const record of reservationsOf(claim)) {
          const taken = storedAs("reservation", { ...record, ...released }, more);
          reservations.set(copy(taken));
          assert.deepEqual(reservations.get(taken.key), taken);
        }
      }),
    );
  });

  it("share what they have in common", () => {
    const claims = new KeptRecords(new ClaimPacking());
    for (const name of ["mysql-0", "mysql-1"]) {
      claims.set(storedAs("claim", copy(claimRecord({ name, request: { pools: ["db"] } }))));
    }
    const [one, other] = [...claims.values()].map(({ record }) => record);
    assert.equal(one?.request, other?.request);
    assert.equal(one?.retention, other?.retention);
  });

  it("are there under their key until they are deleted, and once", () => {
    const claims = new KeptRecords(new ClaimPacking());
    const [first, second] = ["mysql-0", "mysql-1"].map((name) => storedAs("claim", claimRecord({ name })));
    assert.ok(first !== undefined && second !== undefined);
    claims.set(first);
    claims.set(second);
    claims.set({ ...first, revision: "9" });
    assert.deepEqual([...claims.values()], [{ ...first, revision: "9" }, second]);
    claims.delete(first.key);
    assert.deepEqual([...claims.keys()], [second.key]);
    assert.equal(claims.size, 1);
    assert.ok(!claims.has(first.key) && claims.get(first.key) === undefined);
  });

  it("are passed over by what they share, and never one that is not packed", () => {
    const reservations = new KeptRecords(new ReservationPacking());
    const [record] = reservationsOf(claimRecord({ addresses: addrs("10.20.0.70") }));
    assert.ok(record !== undefined);
    const of = (address: string, pool: string, nonce: string): Stored<"reservation"> => {
      const [own = record.address] = addrs(address);
      return storedAs("reservation", { ...record, address: own, pool, nonce });
    };
    const all = [of("10.20.0.1", "db", "n"), of("10.20.0.2", "web", "n"), of("10.20.0.3", "web", "n\nn")];
    for (const one of all) reservations.set(one);
    const found = [...reservations.values(({ form }) => form.rest.pool === "db")];
    assert.deepEqual(found, [all[0], all[2]]);
  });

  it("come to an end for whoever looks at them while more and more come", () => {
    const kept = new KeptRecords(new ClaimPacking());
    const add = (name: string) => kept.set(storedAs("claim", claimRecord({ name })));
    for (const name of ["a", "b"]) add(name);
    const seen: string[] = [];
    for (const { key } of kept.values()) {
      seen.push(key);
      add(`later-${seen.length}`);
    }
    assert.deepEqual(seen, ["shop/a", "shop/b"]);
  });

  it("do not keep what is long once their record is gone", () => {
    const packing = new ClaimPacking();
    const saying = (message: string) => {
      const status = { phase: "Pending", message } as const;
      return packing.pack(storedAs("claim", claimRecord({ status })));
    };
    assert.equal(saying("none is free")?.form, saying("none is free")?.form);
    const long = "x".repeat(2_000);
    assert.notEqual(saying(long)?.form, saying(long)?.form);
  });
});
