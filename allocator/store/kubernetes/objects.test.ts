// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { KubeItem } from "../../../kube/api/resource.ts";
import { anyAddress, anyClaim, anyPool, anyReservation, anyStoredBlock } from "../../../test/api/records.ts";
import { isRefusal } from "../../base/errors.ts";
import type { Claim } from "../../model/claim.ts";
import { parsePool } from "../../pool/pool.ts";
import { keyOf } from "../codec.ts";
import { addr, bareClaim, blockOf, fullClaim, poolOf, reservationOf } from "../contract/samples.ts";
import type { Kind, Records } from "../store.ts";
import {
  blockStatusPatch,
  finalizersFor,
  IN_USE,
  isGone,
  keyOfPlace,
  needsReport,
  placeOf,
  specOf,
  statusPatch,
  storedOf,
} from "./objects.ts";

const META = { uid: "u-1", resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z" };

type Fields = Readonly<Record<string, unknown>>;

/** An object as the API server gives it back: through JSON, and without what merging a null takes away. */
function itemOf<K extends Kind>(kind: K, record: Records[K], more: Fields = {}): KubeItem {
  const place = placeOf(kind, keyOf(kind, record));
  const status = statusOf(record);
  const object = { metadata: { ...place, ...META }, spec: specOf(kind, record), ...status, ...more };
  return JSON.parse(
    JSON.stringify(object, (key, value) => (value === null && key !== "ttl" ? undefined : value)),
  );
}

function statusOf(record: Records[Kind]): Fields {
  if ("request" in record) return { status: statusPatch(record.status) };
  return "holes" in record && record.status ? { status: blockStatusPatch(record.status) } : {};
}

function claimItem(spec: Fields, more: Fields = {}): KubeItem {
  const metadata = { namespace: "shop", name: "mysql-0", ...META };
  return { metadata, spec, ...more } as KubeItem;
}

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

describe("the status of a claim", () => {
  it("needs no write of its own at first, unless it says something", () => {
    assert.equal(needsReport({}), false);
    assert.equal(needsReport(fullClaim("a").status), true);
    assert.equal(needsReport({ message: "" }), true);
  });

  it("says nothing until something is reported, nor of a phase that an earlier version wrote", () => {
    const record = bareClaim("mysql-0");
    const read = (status: Fields | undefined) =>
      storedOf("claim", itemOf("claim", record, { status })).record.status;
    for (const status of [undefined, { conditions: [] }, { phase: "Held" }])
      assert.deepEqual(read(status), {});
  });

  it("takes away what it does not have, and leaves alone what is not its own", () => {
    assert.deepEqual(statusPatch({}), { phase: null, attachment: null, message: null });
    const status = { message: "it waits", conditions: [{ type: "Ready" }], repeat: "x" };
    const item = itemOf("claim", bareClaim("mysql-0"), { status });
    assert.deepEqual(storedOf("claim", item).record.status, { message: "it waits" });
  });
});

describe("the status of a block", () => {
  const record = blockOf("10.30.4.0/26", { granted: true });
  const stored = (status: Fields) => storedOf("block", itemOf("block", record, { status })).record.status;

  it("is none until its agent has written", () => {
    assert.equal(stored({}), undefined);
    assert.equal(stored({ conditions: [] }), undefined);
    assert.deepEqual(stored({ node: "node-a", used: 0, repeat: "x" }), { node: "node-a", used: 0 });
    assert.throws(() => stored({ node: "node-a" }), { code: "STATE_CORRUPT" });
  });

  it("takes away a word that was not given", () => {
    assert.deepEqual(blockStatusPatch({ node: "node-a", used: 2 }), {
      node: "node-a",
      used: 2,
      returnedAt: null,
    });
    const returned = { node: "node-a", used: 0, returnedAt: 1_700_000_000_000 };
    const patch = blockStatusPatch(returned);
    assert.equal(patch["returnedAt"], "2023-11-14T22:13:20.000Z");
    assert.deepEqual(stored(patch), returned);
  });

  it("is no part of what is written of the block", () => {
    assert.equal("status" in specOf("block", { ...record, status: { node: "node-a", used: 1 } }), false);
  });
});

describe("objects that a newer version wrote", () => {
  const full = fullClaim("mysql-0");
  const known = itemOf("claim", full) as KubeItem & { spec: Fields; status: Fields };
  const binding = { ...(known.spec["binding"] as Fields), fencedBy: "x" };
  const retention = { whenDeleted: "Archive", whenScaled: "Release", ttl: "24h0m0s", limit: 3 };
  const spec = { ...known.spec, colour: "red", binding, retention };
  const attachment = { ...(known.status["attachment"] as Fields), cgroup: "/kubepods/x" };
  const stored = storedOf("claim", claimItem(spec, { status: { phase: "Lost", attachment } }));

  it("are read past what is not known", () => {
    const { record } = stored;
    assert.deepEqual(record.binding, full.binding);
    assert.deepEqual(record.retention, { whenDeleted: "Retain", whenScaled: "Release", ttlMs: null });
    assert.deepEqual(record.status, { attachment: full.status.attachment });
  });

  it("are written back with it", () => {
    const { admittedAt: _, ...rest } = stored.record;
    const { admittedAt: __, ...wanted } = spec as Fields;
    assert.deepEqual(specOf("claim", rest, stored), wanted);
  });

  it("keep it in the status, but not for another sandbox", () => {
    const status = { attachment: full.status.attachment } as const;
    assert.equal("cgroup" in (statusPatch(status, stored)["attachment"] as Fields), false); // merging leaves it
    const next = { attachment: { ...full.status.attachment, containerID: "c2" } } as const;
    assert.equal((statusPatch(next, stored)["attachment"] as Fields)["cgroup"], null);
  });
});

describe("objects that are no records", () => {
  const refused = (kind: Kind, item: KubeItem, words: RegExp) =>
    assert.throws(() => storedOf(kind, item), { code: "STATE_CORRUPT", message: words });

  it("are refused with kind and key", () => {
    const { spec } = itemOf("reservation", reservationOf(addr("10.20.0.51"))) as KubeItem & { spec: Fields };
    const metadata = { name: "10.20.0.52", ...META };
    refused(
      "reservation",
      { metadata, spec } as KubeItem,
      /^the IPReservation 10.20.0.52 cannot be read: its name is not that of the address 10.20.0.51; correct or delete it$/,
    );
    refused(
      "reservation",
      { metadata: { name: "db", ...META }, spec } as KubeItem,
      /^the IPReservation db cannot be read/,
    );
    const pool = { metadata: { name: "db", ...META }, spec: {} } as KubeItem;
    refused(
      "pool",
      pool,
      /^the IPPool db cannot be read: pool.spec is not that of a pool: spec.ranges is missing/,
    );
    refused("pool", itemOf("pool", poolOf("db"), { spec: null }), /^the IPPool db cannot be read/);
  });

  it("are refused for what does not read", () => {
    const { spec } = itemOf("claim", fullClaim("mysql-0")) as KubeItem & { spec: Fields };
    refused("claim", claimItem({ ...spec, admittedAt: "yesterday" }), /claim.admittedAt must be a number/);
    refused("claim", claimItem({ ...spec, retention: { ttl: "1d" } }), /claim.retention/);
  });

  it("do not include a pool that was deleted and waits for its finalizers: it gives no new addresses", () => {
    const there = itemOf("pool", poolOf("db"));
    assert.equal(storedOf("pool", there).record.deleting, undefined);
    const metadata = { ...there.metadata, deletionTimestamp: "2026-01-02T00:00:00Z" };
    const { record } = storedOf("pool", { ...there, metadata });
    assert.deepEqual(record, { ...poolOf("db"), deleting: true });
    const pool = parsePool(record);
    assert.deepEqual(isRefusal(pool) ? pool : [pool.disabled, pool.deleting], [true, true]);
    assert.deepEqual(specOf("pool", record), poolOf("db").spec);
  });

  it("say of a claim that it was deleted and waits, whoever made it, and never write that", () => {
    const metadata = {
      namespace: "shop",
      name: "mysql-0",
      ...META,
      deletionTimestamp: "2026-01-02T00:00:00Z",
    };
    const made = itemOf("claim", bareClaim("mysql-0"));
    const { record } = storedOf("claim", { ...made, metadata });
    assert.deepEqual(record, { ...bareClaim("mysql-0"), deleting: true });
    assert.deepEqual(specOf("claim", record), specOf("claim", bareClaim("mysql-0")));
    const byHand = storedOf("claim", { ...claimItem({ request: { pools: ["db"] } }), metadata });
    assert.deepEqual([byHand.record.handMade, byHand.record.deleting], [true, true]);
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
    assert.deepEqual(record.status, { message: "taken" });
  });
});

describe("the finalizers of a claim", () => {
  const free = bareClaim("mysql-0");
  const bound = bareClaim("mysql-0", { binding: fullClaim("mysql-0").binding });
  const held = bareClaim("mysql-0", { binding: { ...fullClaim("mysql-0").binding, node: "" } });
  const releasing = { ...bound, releasing: true };
  const seen = (record: Claim, ...finalizers: readonly string[]) => {
    const item = itemOf("claim", record);
    const gone = record.deleting === true ? { deletionTimestamp: "2026-01-02T00:00:00Z" } : {};
    return storedOf("claim", { ...item, metadata: { ...item.metadata, finalizers, ...gone } });
  };
  const another = "example.org/backup";
  const doomed = { ...bound, deleting: true };
  const cases: readonly (readonly [
    string,
    Parameters<typeof finalizersFor>,
    readonly string[] | undefined,
  ])[] = [
    ["come when it is made bound", [undefined, bound], [IN_USE]],
    ["are none when it is made", [undefined, held], undefined],
    ["come when it is bound", [seen(free), bound], [IN_USE]],
    ["come when the pod is there, after those of others", [seen(held, another), bound], [another, IN_USE]],
    ["stay when it is bound anew", [seen(bound, IN_USE), bound], undefined],
    ["are not there while it is held", [seen(free), held], undefined],
    ["go when it is let go", [seen(bound, IN_USE), free], []],
    ["go when it is held anew", [seen(bound, IN_USE), held], []],
    [
      "go when it is released, and leave those of others",
      [seen(bound, IN_USE, another), releasing],
      [another],
    ],
    ["go from one that is deleted", [seen(doomed, IN_USE), { ...doomed, releasing: true }], []],
    ["do not come to one that is deleted", [seen({ ...free, deleting: true }, another), doomed], undefined],
  ];
  for (const [title, args, wanted] of cases) {
    it(title, () => assert.deepEqual(finalizersFor(...args), wanted));
  }

  it("are no concern of pools and reservations", () => {
    assert.equal(finalizersFor(undefined, poolOf("db")), undefined);
    assert.equal(finalizersFor(undefined, reservationOf(addr("10.20.0.51"))), undefined);
    const item = itemOf("pool", poolOf("db"));
    const kept = { ...item, metadata: { ...item.metadata, finalizers: [IN_USE] } };
    assert.equal(storedOf("pool", kept).finalizers, undefined);
  });

  it("are kept with what was read, if there are any", () => {
    assert.deepEqual(seen(bound, IN_USE).finalizers, [IN_USE]);
    assert.deepEqual(seen(bound, IN_USE, another).finalizers, [IN_USE, another]);
    assert.equal("finalizers" in seen(bound), false);
  });

  it("were the last ones of what is gone", () => {
    const { metadata } = itemOf("claim", free);
    const deletionTimestamp = "2026-01-02T00:00:00Z";
    assert.equal(isGone({ metadata }), false);
    assert.equal(isGone({ metadata: { ...metadata, deletionTimestamp } }), true);
    assert.equal(isGone({ metadata: { ...metadata, deletionTimestamp, finalizers: [another] } }), false);
  });
});
