// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { altered } from "../../test/simulation/altered.ts";
import { podAllocation } from "../../test/support/allocation-requests.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import { noopLogger } from "../base/ports.ts";
import { RecordCache } from "../cache/cache.ts";
import { reserve } from "./reserve.ts";

describe("limits.perNamespace, where the view is behind", () => {
  const LIMIT = 120;
  const ASKED = 80; // more than take turns where a limit is near

  it("has the namespace's claims listed for all at once who are to be counted, and is exact", async () => {
    for (const [limit, granted] of [
      [LIMIT, ASKED],
      [ASKED - 1, undefined], // together they are too many, and nobody knows whose is the last
    ] as const) {
      let lists = 0;
      await using world = await openWorld({
        pools: [poolRecord("web", "10.30.0.0/24", { limits: { perNamespace: limit } })],
        wrap: (store) =>
          altered(store, {
            async *list(kind, namespace) {
              lists++;
              for (let turn = 0; turn < 200; turn++) await nextTurn();
              yield* store.list(kind, namespace);
            },
          }),
      });
      const view = new RecordCache(noopLogger); // it knows the pool, and never hears of anything else
      view.apply("pool", { type: "relist" });
      for (const stored of world.cache.poolRecords()) view.apply("pool", { type: "put", stored });
      view.apply("pool", { type: "synced" });
      let walks = 0;
      const reservations = view.reservations.bind(view);
      view.reservations = (pool) => {
        walks++;
        return reservations(pool);
      };
      const context = { ...world.context, view };
      const got = await Promise.all(
        Array.from({ length: ASKED }, (_, n) =>
          reserve(context, podAllocation(world, `p-${n}`, { pools: ["web"] }), "pod"),
        ),
      );
      const held = (await world.all("claim")).length;
      assert.equal(got.filter((each) => !isRefusal(each)).length, held);
      assert.ok(granted === undefined ? held <= limit : held === granted, `${held} at a limit of ${limit}`);
      assert.ok(walks <= lists, `${walks} walks over all reservations`);
      assert.ok(lists <= ASKED / 4, `${lists} lists for ${ASKED} claims`);
    }
  });
});
