// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { type EventInput, EventRecorder, type Series } from "./event-recorder.ts";

const about = (namespace: string, name: string): EventInput => ({
  regarding: { apiVersion: "apps/v1", kind: "StatefulSet", namespace, name },
  ...{ type: "Warning", reason: "AddressTaken", action: "Reserving", note: "taken" },
});

/** What is sent of events that were recorded together, by namespace. */
async function sentOf(notices: readonly EventInput[]): Promise<Readonly<Record<string, number>>> {
  const sent: Record<string, number> = {};
  const sink = {
    create: async ({ namespace }: Series) => {
      sent[namespace] = (sent[namespace] ?? 0) + 1;
    },
    count: async () => true,
  };
  let tokens = 0;
  const random = { token: () => `token${tokens++}`, fraction: () => 1 };
  const recorder = new EventRecorder({ sink, clock: new ManualClock(), random, log: noopLogger });
  for (const notice of notices) recorder.record(notice);
  const stop = new AbortController();
  const running = recorder.run(stop.signal);
  await eventLoopTurns(2_000);
  stop.abort();
  await running;
  return sent;
}

describe("an EventRecorder that one namespace has filled", () => {
  const flood = Array.from({ length: 1_500 }, (_, n) => about("bad", `db-${n}`));

  it("has room for another's events, and loses that one's", async () => {
    const others = Array.from({ length: 20 }, (_, n) => about("shop", `db-${n}`));
    assert.deepEqual(await sentOf([...flood, ...others]), { bad: 980, shop: 20 });
  });

  it("has none for more where all have as many", async () => {
    const each = Array.from({ length: 1_000 }, (_, n) => about(`team-${n}`, "db"));
    const sent = await sentOf([...each, about("shop", "db")]);
    assert.deepEqual([Object.keys(sent).length, sent["shop"]], [1_000, undefined]);
  });
});
