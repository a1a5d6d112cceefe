// SPDX-License-Identifier: Apache-2.0
// A claim that the API server refuses, as a quota, a policy or a namespace that is going makes it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { poolRecord, refusalOf } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { BerthError, type FaultCode } from "../base/errors.ts";
import type { Kind, Records } from "../store/store.ts";
import { reserve } from "./reserve.ts";

const WORDS = "the API server refuses to create ipclaims shop/a with 403: exceeded quota: claims";
const BOTH = [poolRecord("tiny", ["10.0.0.0/29", "fd00::/120"])];

/** A store in which no record of the kind can be created. */
function refusing(code: FaultCode, wrote: "nothing" | "everything" = "nothing", kind: Kind = "claim") {
  return openWorld({
    pools: BOTH,
    wrap: (store) =>
      altered(store, {
        create: async <K extends Kind>(of: K, record: Records[K]) => {
          const refuses = of === kind && !("address" in record && record.address === "10.0.0.1");
          if (!refuses) return await store.create(of, record);
          if (wrote === "everything") await store.create(of, record);
          throw new BerthError(code, WORDS);
        },
      }),
  });
}

describe("reserve, where the claim is refused", () => {
  it("gives every address back at once, and says why in the API server's own words", async () => {
    await using there = await refusing("WRITE_REFUSED");
    for (const wanted of [{ pools: ["tiny"] }, entries("10.0.0.1,fd00::1")]) {
      const got = await reserve(there.context, podAllocation(there, "a", wanted), "pod");
      assert.equal(refusalOf(got), `CLAIM_REFUSED: ${WORDS}`);
      assert.deepEqual(await there.all("reservation"), []);
    }
  });

  it("gives every address back after any fault that says that nothing was written", async () => {
    for (const code of ["STORE_READ_ONLY", "REVISION_CONFLICT", "INTERNAL"] as const) {
      await using there = await refusing(code);
      await assert.rejects(reserve(there.context, podAllocation(there, "a", { pools: ["tiny"] }), "pod"), {
        code,
      });
      assert.deepEqual(await there.all("reservation"), []);
    }
  });

  it("keeps the addresses after a fault that leaves open whether the claim was written", async () => {
    for (const code of ["STORE_UNAVAILABLE", "TIMED_OUT"] as const) {
      for (const wrote of ["nothing", "everything"] as const) {
        await using there = await refusing(code, wrote);
        await assert.rejects(reserve(there.context, podAllocation(there, "a", { pools: ["tiny"] }), "pod"), {
          code,
        });
        assert.equal((await there.all("reservation")).length, 2, `${code}, ${wrote} written`);
      }
    }
  });

  it("gives the first family's address back when the second one's is refused", async () => {
    await using there = await refusing("WRITE_REFUSED", "nothing", "reservation");
    const both = podAllocation(there, "a", entries("10.0.0.1,fd00::1"));
    await assert.rejects(reserve(there.context, both, "pod"), { code: "WRITE_REFUSED" });
    assert.deepEqual(await there.all("reservation"), []);
  });

  it("takes no address where the store says beforehand that the claim is refused", async () => {
    const counts = { asked: 0, creates: 0 };
    await using there = await openWorld({
      pools: BOTH,
      wrap: (store) =>
        altered(store, {
          mayCreate: async () => {
            counts.asked++;
            throw new BerthError("WRITE_REFUSED", WORDS);
          },
          create: async (kind, record) => {
            counts.creates++;
            return await store.create(kind, record);
          },
        }),
    });
    const got = await reserve(there.context, podAllocation(there, "a", { pools: ["tiny"] }), "pod");
    assert.equal(refusalOf(got), `CLAIM_REFUSED: ${WORDS}`);
    assert.deepEqual(counts, { asked: 1, creates: 0 });
  });
});
