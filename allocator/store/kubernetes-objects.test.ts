// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Item } from "../../kube/resource.ts";
import { anyAddress, anyClaim, anyPool, anyReservation } from "../../test/api/records.ts";
import type { Claim } from "../claim.ts";
import { keyOf } from "./codec.ts";
import { addr, bareClaim, fullClaim, poolOf, reservationOf } from "./contract-samples.ts";
import {
  FIRST_PHASE,
  firstStatus,
  keyOfPlace,
  placeOf,
  specOf,
  statusPatch,
  storedOf,
} from "./kubernetes-objects.ts";
import type { Kind, Records } from "./store.ts";

const META = { uid: "u-1", resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z" };

type Fields = Readonly<Record<string, unknown>>;

/** An object as the API server gives it back: through JSON, and without what merging a null takes away. */
function itemOf<K extends Kind>(kind: K, record: Records[K], more: Fields = {}): Item {
  const place = placeOf(kind, keyOf(kind, record));
  const status = "status" in record ? { status: statusPatch(record.status) } : {};
  const object = { metadata: { ...place, ...META }, spec: specOf(kind, record), ...status, ...more };
  return JSON.parse(
    JSON.stringify(object, (key, value) => (value === null && key !== "ttl" ? undefined : value)),
  );
}

function claimItem(spec: Fields, more: Fields = {}): Item {
  const metadata = { namespace: "shop", name: "mysql-0", ...META };
  return { metadata, spec, ...more } as Item;
}

describe("objects of records", () => {
  const cases: readonly (readonly [Kind, fc.Arbitrary<Records[Kind]>])[] = [
    ["pool", anyPool],
    ["claim", anyClaim],
    ["reservation", anyReservation],
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

describe("the status of a claim", () => {
  it("needs no write of its own at first, unless there is more than a phase", () => {
    assert.deepEqual(firstStatus({ phase: "Pending" }), {});
    assert.deepEqual(firstStatus({ phase: "Reserved" }), { [FIRST_PHASE]: "Reserved" });
    assert.equal(firstStatus(fullClaim("a").status), undefined);
    assert.equal(firstStatus({ phase: "Pending", message: "" }), undefined);
  });

  it("is the first one until it is reported", () => {
    const record = bareClaim("mysql-0", { status: { phase: "Reserved" } });
    const annotations = firstStatus(record.status);
    const metadata = { namespace: "shop", name: "mysql-0", annotations, ...META };
    const phaseOf = (status: Fields | undefined) =>
      storedOf("claim", itemOf("claim", record, { metadata, status })).record.status.phase;
    assert.equal(phaseOf(undefined), "Reserved");
    assert.equal(phaseOf({ conditions: [] }), "Reserved");
    assert.equal(phaseOf({ phase: "Held" }), "Held");
  });

  it("takes away what it does not have, and leaves alone what is not its own", () => {
    assert.deepEqual(statusPatch({ phase: "Held" }), { phase: "Held", attachment: null, message: null });
    const status = { phase: "Held", conditions: [{ type: "Ready" }], repeat: "x" };
    const item = itemOf("claim", bareClaim("mysql-0"), { status });
    assert.deepEqual(storedOf("claim", item).record.status, { phase: "Held" });
  });
});

describe("objects that are no records", () => {
  const refused = (kind: Kind, item: Item, words: RegExp) =>
    assert.throws(() => storedOf(kind, item), { code: "STATE_CORRUPT", message: words });

  it("are refused with kind and key", () => {
    const { spec } = itemOf("reservation", reservationOf(addr("10.20.0.51"))) as Item & { spec: Fields };
    const metadata = { name: "10.20.0.52", ...META };
    refused(
      "reservation",
      { metadata, spec } as Item,
      /^the IPReservation 10.20.0.52 cannot be read: its name is not that of the address 10.20.0.51; correct or delete it$/,
    );
    refused(
      "reservation",
      { metadata: { name: "db", ...META }, spec } as Item,
      /^the IPReservation db cannot be read/,
    );
    const pool = { metadata: { name: "db", ...META }, spec: {} } as Item;
    refused(
      "pool",
      pool,
      /^the IPPool db cannot be read: pool.spec is not that of a pool: spec.ranges is missing/,
    );
    refused("pool", itemOf("pool", poolOf("db"), { spec: null }), /^the IPPool db cannot be read/);
  });

  it("are refused for a field of a newer Berth, which the next write would lose", () => {
    const { spec } = itemOf("claim", fullClaim("mysql-0")) as Item & { spec: Fields };
    refused(
      "claim",
      claimItem({ ...spec, colour: "red" }),
      /IPClaim shop\/mysql-0 cannot be read: claim.colour is not known/,
    );
    refused("claim", claimItem({ ...spec, admittedAt: "yesterday" }), /claim.admittedAt must be a number/);
    refused("claim", claimItem({ ...spec, retention: { ttl: "1d" } }), /claim.retention/);
  });

  it("are told in words when a person wrote them", () => {
    refused(
      "claim",
      claimItem({ request: {} }),
      /what was written by hand .*spec.request names neither addresses nor pools/,
    );
    refused(
      "claim",
      claimItem({ request: { pools: ["db"] }, binding: {} }),
      /spec.binding is written by Berth; leave it out/,
    );
  });

  it("do not include a claim by hand", () => {
    const spec = { request: { addresses: ["10.20.0.51"] }, retention: { whenDeleted: "Retain", ttl: "48h" } };
    const { record } = storedOf("claim", claimItem(spec, { status: { phase: "Pending", message: "taken" } }));
    assert.deepEqual(record.retention, { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 172_800_000 });
    assert.deepEqual(record.identity, { kind: "Pod", apiVersion: "v1", name: "mysql-0" });
    assert.deepEqual([record.handMade, record.nonce, record.addresses], [true, "", []]);
    assert.deepEqual(record.status, { phase: "Pending", message: "taken" });
  });
});
