// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { podAllocation } from "../../test/support/allocation-requests.ts";
import { addrs, claimRecord, DB_POOL, poolRecord, refusalOf } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { reserve } from "./reserve.ts";

const HAS = { eth0: addrs("10.30.0.70"), net1: addrs("10.20.0.70") };

describe("a claim made by hand", () => {
  it("does not fit a pod that asks for an interface of a name that every object has", async () => {
    for (const name of ["net2", "constructor", "toString"]) {
      await using world = await openWorld({ pools: [DB_POOL, poolRecord("web", "10.30.0.0/24")] });
      const resolved = claimRecord({
        name: "x",
        identity: { kind: "Pod", apiVersion: "v1", name: "x" },
        request: { addresses: addrs("10.30.0.70", "10.20.0.70"), interfaces: HAS },
        addresses: [],
        nonce: "",
        handMade: true,
      });
      await world.realStore.create("claim", resolved);
      await world.settle();
      const asked = {
        entries: [addrs("10.20.0.80")],
        interfaces: { [name]: addrs("10.20.0.80") },
        interfacePools: { net1: ["db"], eth0: ["web"] },
      };
      const got = await reserve(world.context, podAllocation(world, "x", asked), "pod");
      assert.match(refusalOf(got), /^CLAIM_BUSY: claim shop\/x was made by hand/, name);
    }
  });
});
