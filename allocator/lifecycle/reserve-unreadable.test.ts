// SPDX-License-Identifier: Apache-2.0
// One record that cannot be read, as a person or a newer Berth may leave it in an API server.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { anonymousAllocation, entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { granted, poolRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { BerthError, isRefusal } from "../base/errors.ts";
import { reserve } from "./reserve.ts";

const CORRUPT = new BerthError(
  "STATE_CORRUPT",
  "the IPReservation 10.0.0.1 cannot be read: correct or delete it",
);

describe("reserve, where a record cannot be read", () => {
  const world = (seed = 1) =>
    openWorld({
      seed,
      pools: [poolRecord("tiny", "10.0.0.0/30")],
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if ("address" in record && record.address === "10.0.0.1") throw CORRUPT;
            if ("name" in record && record.name === "broken") throw CORRUPT;
            return await store.create(kind, record);
          },
          get: async (kind, key) => {
            if (key === "shop/broken") throw CORRUPT;
            return await store.get(kind, key);
          },
        }),
    });

  it("leaves its address alone, wherever the picking begins", async () => {
    for (let seed = 1; seed <= 8; seed++) {
      await using there = await world(seed);
      const got = granted(
        await reserve(there.context, anonymousAllocation(there, { pools: ["tiny"] }), "pod"),
      );
      assert.deepEqual(got.claim.record.addresses, ["10.0.0.2"]);
      const next = await reserve(there.context, anonymousAllocation(there, { pools: ["tiny"] }), "pod");
      assert.equal(isRefusal(next) ? next.code : next.kind, "POOL_EXHAUSTED");
    }
  });

  it("says so to whoever asks for that address by name", async () => {
    await using there = await world();
    await assert.rejects(
      reserve(there.context, podAllocation(there, "whole", entries("10.0.0.1")), "pod"),
      CORRUPT,
    );
    assert.deepEqual(await there.holdings(), {});
  });

  it("keeps nothing for an identity whose claim it is", async () => {
    await using there = await world();
    for (const wanted of [entries("10.0.0.2"), { pools: ["tiny"] }]) {
      await assert.rejects(reserve(there.context, podAllocation(there, "broken", wanted), "pod"), CORRUPT);
      assert.deepEqual(await there.holdings(), {});
    }
  });
});
