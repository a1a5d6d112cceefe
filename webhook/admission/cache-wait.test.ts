// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { annotationsOf, applied, deniedAs, pod, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { waitForPools } from "./cache-wait.ts";
import { createHandlers } from "./routes.ts";

const POOL = poolRecord("db", "10.20.0.0/24");
const REQUEST = pod("a", { annotations: { "berth.dev/ips": "10.20.0.70" } });

/** The cache hears of what the store has now. */
async function tell(world: World, cache: RecordCache): Promise<void> {
  for await (const stored of world.realStore.list("pool")) cache.apply("pool", { type: "put", stored });
}

describe("a view that is behind", () => {
  it("is waited for before a pod is refused for a pool that was applied just before it", async () => {
    await using world = await openWorld();
    let waits = 0;
    const catchUp = async () => {
      if (waits++ > 0) return false;
      await world.realStore.create("pool", POOL);
      await world.settle();
      return true;
    };
    const handle = createHandlers({ ...world.admission, catchUp })["/mutate/pods"];
    const live = new AbortController().signal;
    const response = await handle(review(REQUEST), live);
    assert.equal(annotationsOf(applied(REQUEST, response))["berth.dev/addresses"], "10.20.0.70");
    const outside = pod("b", { annotations: { "berth.dev/ips": "192.0.2.1" } });
    assert.match(deniedAs(await handle(review(outside), live)), /^ADDRESS_OUTSIDE: /);
    assert.equal(waits, 2);
    const taken = pod("c", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    assert.match(deniedAs(await handle(review(taken), live)), /^ADDRESS_TAKEN: /);
    assert.equal(waits, 2);
  });

  it("has caught up when it has heard of every pool, new or changed, and not when nothing was missing", async () => {
    await using world = await openWorld();
    const cache = new RecordCache(noopLogger);
    const sources = { store: world.realStore, clock: world.clock };
    assert.equal(await waitForPools(sources, cache), false);
    await world.realStore.create("pool", POOL);
    const first = waitForPools(sources, cache);
    await tell(world, cache);
    assert.equal(await first, true);
    assert.equal(await waitForPools(sources, cache), false);
    const seen = await world.realStore.get("pool", "db");
    assert.ok(seen);
    await world.realStore.replace("pool", seen, { ...POOL, spec: { ...POOL.spec, disabled: true } });
    const second = waitForPools(sources, cache);
    await tell(world, cache);
    assert.equal(await second, true);
  });

  it("that hears nothing is given up after a second", async () => {
    await using world = await openWorld();
    await world.realStore.create("pool", POOL);
    const began = world.clock.monotonic();
    assert.equal(
      await waitForPools({ store: world.realStore, clock: world.clock }, new RecordCache(noopLogger)),
      false,
    );
    assert.equal(world.clock.monotonic() - began, 1_000);
  });
});
