// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Store } from "../store.ts";
import { bareClaim, nth, poolOf, reservationOf } from "./samples.ts";
import { caseOf, converges, created, expectReplaced, listed, type Open, syncedWatch } from "./subject.ts";

/** Two handles on the same data, as two processes have them. Nothing to test for an engine without. */
export function secondHandleContract(open: Open): void {
  const both = (title: string, work: (store: Store, second: Store) => Promise<void>) =>
    caseOf(open, title, async ({ store, second }) => {
      if (second !== undefined) await work(store, await second());
    });

  describe("a second handle", () => {
    both("sees at once what the first has written", async (store, second) => {
      const stored = await created(store, "claim", bareClaim("mysql-0"));
      assert.deepEqual(await second.get("claim", stored.key), stored);
      assert.deepEqual(await listed(second, "claim"), [stored]);
      const changed = expectReplaced(
        await second.replace("claim", stored, bareClaim("mysql-0", { nonce: "n2" })),
      );
      assert.deepEqual(await store.get("claim", stored.key), changed);
      assert.deepEqual(await store.remove("claim", stored), { kind: "conflict" });
      assert.deepEqual(await store.remove("claim", changed), { kind: "removed" });
      assert.equal(await second.get("claim", stored.key), undefined);
    });

    both("is seen by the watches of the first", async (store, second) => {
      const watching = await syncedWatch(store, "pool");
      const own = await created(store, "pool", poolOf("own"));
      const other = await created(second, "pool", poolOf("other"));
      await converges(watching, [own, other]);
      await second.remove("pool", own);
      await converges(watching, [other]);
      assert.deepEqual(
        watching.said.slice(2).map((change) => change.type),
        ["put", "put", "gone"],
      );
      await watching.stop();
    });

    both("races fairly: of creates through both, one wins", async (store, second) => {
      for (let round = 0; round < 10; round++) {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            (i % 2 === 0 ? store : second).create(
              "reservation",
              reservationOf(nth(round), { nonce: `n${i}` }),
            ),
          ),
        );
        const winners = results.filter((result) => result.kind === "created");
        assert.equal(winners.length, 1);
        for (const result of results) assert.deepEqual(result.stored, winners[0]?.stored);
      }
    });
  });
}
