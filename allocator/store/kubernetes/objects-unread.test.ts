// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeItem } from "../../../kube/api/resource.ts";
import { isRefusal } from "../../base/errors.ts";
import { parsePool } from "../../pool/pool.ts";
import { addr, bareClaim, fullClaim, poolOf, reservationOf } from "../contract/samples.ts";
import type { Kind } from "../store.ts";
import { specOf, statusPatch, storedOf } from "./objects.ts";
import { type Fields, itemOf, META } from "./testing/items.ts";

function claimItem(spec: Fields, more: Fields = {}): KubeItem {
  const metadata = { namespace: "shop", name: "mysql-0", ...META };
  return { metadata, spec, ...more } as KubeItem;
}

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
