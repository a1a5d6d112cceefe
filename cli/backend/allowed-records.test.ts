// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError, type FaultCode } from "../../allocator/base/errors.ts";
import type { Kind, Store } from "../../allocator/store/store.ts";
import { claimRecord, storedAs } from "../../test/support/fixtures.ts";
import { AllowedRecords } from "./allowed-records.ts";
import { partialCache } from "./backend.ts";

/** Gives a claim, and says `code` to whatever else is asked for. */
function storeThat(code: FaultCode, kinds: readonly Kind[] = ["pool", "reservation", "block"]) {
  const claim = storedAs("claim", claimRecord());
  const judge = (kind: Kind) => {
    if (kinds.includes(kind)) throw new BerthError(code, "no");
  };
  const get = async (kind: Kind) => {
    judge(kind);
    return claim;
  };
  async function* list(kind: Kind) {
    judge(kind);
    yield claim;
  }
  return { get, list } as unknown as Pick<Store, "get" | "list">;
}

describe("records as far as a user may read them", () => {
  it("are none of a kind that is closed to him, which is noted", async () => {
    const records = new AllowedRecords(storeThat("STORE_READ_ONLY"));
    const view = await partialCache(records, claimRecord().addresses);
    assert.deepEqual([view.pools(), [...view.reservations()]], [[], []]);
    assert.deepEqual(
      (["pool", "reservation", "claim"] as const).map((kind) => records.hides(kind)),
      [true, true, false],
    );
    assert.equal((await records.get("claim", "shop/mysql-0"))?.record.name, "mysql-0");
  });

  it("are no answer where claims are closed, or something else is wrong", async () => {
    for (const records of [
      new AllowedRecords(storeThat("STORE_READ_ONLY", ["claim"])),
      new AllowedRecords(storeThat("STORE_UNAVAILABLE", ["claim", "pool"])),
    ])
      await assert.rejects(records.get("claim", "shop/mysql-0"), BerthError);
    const away = new AllowedRecords(storeThat("STORE_UNAVAILABLE"));
    await assert.rejects(partialCache(away, []), { code: "STORE_UNAVAILABLE" });
  });
});
