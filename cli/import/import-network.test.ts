// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { importNetwork, readNetwork, usedOf } from "./import-network.ts";
import { FormerEtcd } from "./testing/former-etcd.ts";

const BEYOND =
  'POOL_INVALID: cni-ipam-etcd gave addresses that the network\'s ranges, as it wrote them last, do not have: 10.0.0.52 of container far; make pool "lan" with the ranges of all its hosts (berthctl --etcd URL apply -f), or stop these containers, then import again';

function wide(etcd: FormerEtcd): void {
  const ranges = [{ cidr: "10.0.0.0/24", from: "10.0.0.50", to: "10.0.0.59", gateway: "10.0.0.254" }];
  etcd.pools.set("lan", { name: "lan", spec: { ranges } });
}

describe("the import of a network of cni-ipam-etcd", () => {
  it("keeps what containers have, and marks everything else", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.52");
    etcd.use("10.0.0.51", "x");
    const imported = granted(await importNetwork(etcd.parts));
    assert.deepEqual(imported, { pool: "lan", kept: 1, addresses: 3 });
    assert.deepEqual(etcd.used(), { "10.0.0.50": "berth", "10.0.0.51": "berth x", "10.0.0.52": "berth" });
    assert.deepEqual(Object.values(etcd.given()), [["10.0.0.51"]]);
    assert.deepEqual(etcd.reported, ["10.0.0.51 x"]);
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 0);
  });

  it("refuses before it makes anything where a host with other ranges gave an address, and so does a dry run", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    etcd.use("10.0.0.52", "far");
    etcd.use("10.0.0.50", "near");
    assert.equal(refusalOf(await importNetwork(etcd.parts)), BEYOND);
    assert.deepEqual([etcd.pools.size, etcd.claims.size], [0, 0]);
    const read = granted(await readNetwork(etcd.network, etcd.store));
    assert.equal(refusalOf(usedOf((await etcd.network.kept()).used, read)), BEYOND);
  });

  it("keeps such an address where the pool that is there has it", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    wide(etcd);
    etcd.use("10.0.0.52", "far");
    etcd.use("10.0.0.50", "near");
    assert.deepEqual(granted(await importNetwork(etcd.parts)), { pool: "lan", kept: 2, addresses: 3 });
    assert.equal(etcd.used()["10.0.0.52"], "berth far");
    assert.deepEqual(Object.values(etcd.given()).flat().toSorted(), ["10.0.0.50", "10.0.0.52"]);
  });
});
