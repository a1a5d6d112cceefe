// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { altered } from "../../test/simulation/altered.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { claimObject, deniedAs, review } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const FAULT = new BerthError("STORE_UNAVAILABLE", "disk full");

describe("a claim made by hand on one host, whose reservation ends in a fault", () => {
  const when = ["before the reservation", "after the reservation", "after the claim"] as const;
  for (const moment of when) {
    it(`does not stay without addresses: ${moment}`, async () => {
      let fails = true;
      await using world = await openWorld({
        pools: [DB_POOL],
        wrap: (store) =>
          altered(store, {
            create: async (kind, record) => {
              const isNow = fails && kind === "reservation";
              if (isNow && moment === "before the reservation") throw FAULT;
              const created = await store.create(kind, record);
              if (isNow && moment === "after the reservation") throw FAULT;
              return created;
            },
            replace: async (kind, seen, next) => {
              const replaced = await store.replace(kind, seen, next);
              if (!fails || kind !== "claim" || moment !== "after the claim") return replaced;
              fails = false;
              throw FAULT;
            },
          }),
      });
      const handle = createHandlers(world.admission)["/validate/claims"];
      const object = claimObject("licence", { request: { addresses: ["10.20.0.70"] } });
      const ask = () => handle(review(object), new AbortController().signal);
      await assert.rejects(ask, FAULT);
      await world.settle();
      const isWhole = moment === "after the claim";
      assert.deepEqual(await world.holdings(), isWhole ? { "shop/licence": "10.20.0.70" } : {});
      fails = false;
      await world.collector().pass();
      assert.equal(deniedAs(await ask()), "");
      await world.settle();
      assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
      await assertClean(world);
    });
  }
});
