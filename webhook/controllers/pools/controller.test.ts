// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopMetrics } from "../../../allocator/base/ports.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { eventLoopTurns } from "../../../kube/testing/event-loop-turns.ts";
import { ScriptedConnection } from "../../../kube/testing/scripted-connection.ts";
import { altered } from "../../../test/simulation/altered.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { openWorld } from "../../../test/support/world.ts";
import type { ControllerDeps } from "../controller.ts";
import { startPools } from "./controller.ts";

describe("the state of pools", () => {
  /** How long after one another it was counted, where each count takes so long, and something changes meanwhile. */
  async function countsWithin(ms: number, tookMs: number): Promise<readonly number[]> {
    const clock = new ManualClock();
    await using world = await openWorld({ clock });
    await world.settle();
    const counted: number[] = [];
    const handlers: (() => void)[] = [];
    const cache = altered<RecordCache>(world.cache, {
      onChange: (_, handler) => {
        handlers.push(handler as () => void);
        return () => {};
      },
      reservations: () => {
        counted.push(clock.monotonic());
        clock.advance(tookMs);
        for (const handler of handlers) handler();
        return [];
      },
    });
    const deps: Partial<ControllerDeps> = {
      ...{ context: world.context, cache, metrics: noopMetrics, connection: new ScriptedConnection() },
      leadership: { leads: () => true, onGain: () => () => {} },
    };
    const controller = startPools(deps as ControllerDeps);
    for (let passed = 0; passed < ms; passed += 100) {
      await eventLoopTurns();
      clock.advance(100);
    }
    await controller.close();
    return counted.slice(1).map((at, n) => at - (counted[n] ?? at));
  }

  it("is counted again after 20 times as long as that took, also where something changes meanwhile", async () => {
    const waits = await countsWithin(24_000, 500);
    assert.equal(waits.length, 2);
    assert.ok(
      waits.every((ms) => ms >= 20 * 500),
      waits.join(),
    );
  });

  it("is counted again within half a minute of a count during which the process stood still", async () => {
    const [wait = 0] = await countsWithin(32_000, 600_000);
    assert.ok(wait >= 600_000 && wait <= 600_000 + 31_000, `${wait} ms`);
  });
});
