// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { countPoolUsage } from "../../allocator/cache/pool-usage.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  reservationRecord,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import { attachment } from "../testing/folder.ts";
import { attachmentManifest, claimManifest, listOf, poolManifest, reservationManifest } from "./manifest.ts";

const AT = "2026-01-01T00:00:00Z";

describe("manifests", () => {
  it("prints a claim as its custom resource", () => {
    const claim = claimRecord({
      interface: "eth0",
      retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 172_800_000 },
      binding: bindingTo("mysql-0", "node-a"),
      admittedAt: NOW,
      status: { attachment: attachmentOf("mysql-0") },
    });
    assert.deepEqual(claimManifest(storedAs("claim", claim, { revision: "7" })), {
      apiVersion: "berth.dev/v1alpha1",
      kind: "IPClaim",
      metadata: {
        name: "mysql-0",
        namespace: "shop",
        uid: "uid-shop/mysql-0",
        resourceVersion: "7",
        creationTimestamp: AT,
      },
      spec: {
        identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 },
        interface: "eth0",
        request: { addresses: ["10.20.0.70"] },
        addresses: ["10.20.0.70"],
        nonce: "n1",
        retention: { whenDeleted: "Retain", whenScaled: "Retain", ttl: "48h0m0s" },
        binding: { token: "", podName: "mysql-0", podUID: "uid-of-mysql-0", node: "node-a", since: AT },
        admittedAt: AT,
      },
      status: {
        phase: "Attached",
        attachment: { ...attachmentOf("mysql-0"), since: AT },
      },
    });
  });

  it("leaves out what a claim does not have, and writes no ttl as null", () => {
    const { spec, status } = claimManifest(storedAs("claim", claimRecord()));
    assert.deepEqual(Object.keys(spec as object), ["identity", "request", "addresses", "nonce", "retention"]);
    assert.deepEqual((spec as { retention: unknown }).retention, {
      whenDeleted: "Release",
      whenScaled: "Retain",
      ttl: null,
    });
    assert.deepEqual(status, { phase: "Reserved" });
  });

  it("names a reservation by its address in full", () => {
    const stored = storedAs("reservation", reservationRecord("fd00:20::51", { releasedAt: NOW }));
    const { metadata, spec } = reservationManifest(stored);
    assert.equal(metadata["name"], "fd00-0020-0000-0000-0000-0000-0000-0051");
    assert.deepEqual(spec, {
      address: "fd00:20::51",
      pool: "db",
      claim: { namespace: "shop", name: "mysql-0" },
      nonce: "n1",
      releasedAt: AT,
    });
  });

  it("counts a pool's addresses by family, more than JSON could", async () => {
    const claims = [
      claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::51"), binding: bindingTo("mysql-0", "node-a") }),
      claimRecord({ name: "mysql-1", addresses: addrs("10.20.0.71") }),
    ];
    const reservations = [
      reservationRecord("10.20.0.70"),
      reservationRecord("fd00:20::51"),
      reservationRecord("10.20.0.71", { releasedAt: NOW }),
      reservationRecord("10.9.0.1", { pool: "other" }),
    ];
    const pool = storedAs("pool", DB_POOL);
    const use = await countPoolUsage(viewOf({ pools: [DB_POOL], claims, reservations }), async () => {});
    const { spec, status } = poolManifest(pool, use.get("db"));
    assert.equal(spec, DB_POOL.spec);
    // IPv4: .50 to .199 less the gateway and ten excluded; IPv6: a /64 less the anycast address.
    const large = 2n ** 64n - 1n;
    assert.deepEqual(status, {
      reserved: 2,
      bound: 2,
      ipv4: { capacity: "139", reserved: 1, cooling: 1, bound: 1, free: "137" },
      ipv6: { capacity: String(large), reserved: 1, cooling: 0, bound: 1, free: String(large - 1n) },
    });
  });

  it("prints an attachment as if it were an object", () => {
    assert.deepEqual(attachmentManifest(attachment("mysql-0", "10.20.0.70", "shop/mysql-0"), "node-a"), {
      apiVersion: "berth.dev/v1alpha1",
      kind: "Attachment",
      metadata: { name: "sandbox-of-mysql-0.eth0", creationTimestamp: AT },
      spec: {
        node: "node-a",
        network: "net",
        containerID: "sandbox-of-mysql-0",
        interface: "eth0",
        netns: "/run/netns/mysql-0",
        source: "claim",
        pod: { namespace: "shop", name: "mysql-0", uid: "uid-of-mysql-0" },
        claim: "shop/mysql-0",
        addresses: ["10.20.0.70"],
      },
    });
  });

  it("puts several into a List", () => {
    assert.deepEqual(listOf([1, 2]), { apiVersion: "v1", kind: "List", metadata: {}, items: [1, 2] });
  });
});
