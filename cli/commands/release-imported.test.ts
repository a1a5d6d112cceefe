// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { addr, claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { formerUse } from "../backend/container-words.ts";
import { Folder } from "../testing/folder.ts";

describe("berthctl release of a claim that an import has made", () => {
  it("warns of the container, which no host knows, and not where anybody may have called a claim so", async (t) => {
    const address = addr("10.20.0.70");
    const name = formerClaimName({ network: "lan", containerID: "e3f0c1d2a4b5c6d7" }, address);
    const identity = { kind: "Pod", apiVersion: "v1", name };
    const kept = claimRecord({ namespace: "default", name, identity, handMade: true, addresses: [address] });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [kept],
      reservations: reservationsOf(kept),
    });
    for (const more of [["--dry-run"], []]) {
      const { code, stderr } = await data.call("release", "10.20.0.70", ...more);
      assert.deepEqual([code, stderr], [0, ""]);
    }
    assert.equal(
      formerUse(kept, "etcd"),
      "container e3f0c1d2a4b5 may have 10.20.0.70 still: cni-ipam-etcd gave it, and no host was told that this container has ended",
    );
  });
});
