// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { DB_POOL, reservationRecord, viewOf } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { freeFrom, SEEN_MS } from "./free-from.ts";

const ADDRESS = "10.20.0.70" as Address;

describe("when others may have an address that was released", () => {
  it("is known once Berth has seen it, which is waited for, and not for long", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { clock, store, view } = world.context;
    let reads = 0;
    const found = async (until: number, releasedAfter: number) => {
      const seen = { ...reservationRecord(ADDRESS), nonce: "n" };
      const get = async () => {
        reads++;
        return { record: reads > releasedAfter ? { ...seen, releasedAt: clock.now() } : seen };
      };
      const asked = freeFrom({ view, clock, store: { ...store, get: get as never } }, ADDRESS, until);
      let settled = false;
      void asked.then(() => {
        settled = true;
      });
      while (!settled) {
        await new Promise((tick) => setImmediate(tick));
        if (world.clock.sleeping > 0) world.clock.advance(200);
      }
      return await asked;
    };
    assert.equal(await found(clock.monotonic() + SEEN_MS, 3), clock.now() + 30_000);
    assert.equal(reads, 4);
    reads = 0;
    assert.equal(await found(clock.monotonic() + SEEN_MS, Number.POSITIVE_INFINITY), undefined);
    assert.equal(reads, 11);
    reads = 0;
    assert.equal(await found(clock.monotonic(), Number.POSITIVE_INFINITY), undefined, "nobody is waited for");
    assert.equal(reads, 1);
  });

  it("is not waited for by who may not read it, or where nothing is left of it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { clock, store, view } = world.context;
    const until = clock.monotonic() + SEEN_MS;
    assert.equal(await freeFrom({ view, clock, store }, ADDRESS, until), clock.now());
    const cooling = { record: { ...reservationRecord(ADDRESS), releasedAt: clock.now() } };
    const without = {
      view: viewOf({ pools: [] }),
      clock,
      store: { ...store, get: (async () => cooling) as never },
    };
    assert.equal(
      await freeFrom(without, ADDRESS, until),
      undefined,
      "who may not read pools knows no cooldown",
    );
    const get = () => Promise.reject(new BerthError("STORE_READ_ONLY", "may not read reservations"));
    assert.equal(await freeFrom({ view, clock, store: { ...store, get } }, ADDRESS, until), undefined);
  });
});
