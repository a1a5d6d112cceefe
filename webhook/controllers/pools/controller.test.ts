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
  it("is counted again after 20 times as long as that took, also where something changes meanwhile", async () => {
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
        clock.advance(500);
        for (const handler of handlers) handler();
        return [];
      },
    });
    const deps: Partial<ControllerDeps> = {
      ...{ context: world.context, cache, metrics: noopMetrics, connection: new ScriptedConnection() },
      leadership: { leads: () => true, onGain: () => () => {} },
    };
    const controller = startPools(deps as ControllerDeps);
    for (let n = 0; n < 240; n++) {
      await eventLoopTurns();
      clock.advance(100);
    }
    const waits = counted.slice(1).map((at, n) => at - (counted[n] ?? at));
    assert.equal(waits.length, 2);
    assert.ok(
      waits.every((ms) => ms >= 20 * 500),
      waits.join(),
    );
    await controller.close();
  });
});
