// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { exposed } from "../../test/support/exposed.ts";
import { CLAIMS, KRUISE, STATEFULSETS } from "../api/resource.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { ScriptedConnection, type ScriptedResponse } from "../testing/scripted-connection.ts";
import { listAndWatch } from "./list-watch.ts";
import { WatchMetrics } from "./watch-metrics.ts";

const bookmark = (revision: string, annotations?: object) => ({
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: revision, annotations } },
});
const WHOLE = bookmark("5", { "k8s.io/initial-events-end": "true" });

async function watched(
  responses: readonly ScriptedResponse[],
  look: (clock: ManualClock, of: Of) => Promise<void>,
) {
  const { metrics, of } = exposed();
  const clock = new ManualClock();
  const stop = new AbortController();
  const connection = new ScriptedConnection(...responses);
  const health = new WatchMetrics(clock, metrics);
  const random = { fraction: () => 0, token: () => "t" };
  const reading = (async () => {
    const options = { connection, resource: CLAIMS, clock, random, log: noopLogger, health };
    for await (const _ of listAndWatch(options, stop.signal));
  })();
  await eventLoopTurns();
  await look(clock, of);
  stop.abort();
  await reading;
}

type Of = ReturnType<typeof exposed>["of"];

describe("the health of a watch", () => {
  it("is told apart of two kinds of one name", async () => {
    const { metrics, of } = exposed();
    const clock = new ManualClock();
    const health = new WatchMetrics(clock, metrics);
    const [own, foreign] = [health.of(STATEFULSETS), KRUISE.map((resource) => health.of(resource))[0]];
    foreign?.synced();
    clock.advance(7_000);
    foreign?.heard();
    assert.deepEqual((await of("berth_watch_synced")).slice(0, 2), [
      '{kind="StatefulSet"} 0',
      '{kind="StatefulSet.apps.kruise.io"} 1',
    ]);
    assert.equal((await of("berth_watch_silence_seconds"))[0], '{kind="StatefulSet"} 7');
    own.synced();
    assert.equal((await of("berth_watch_synced"))[0], '{kind="StatefulSet"} 1');
  });

  it("is not synced before everything was listed", async () => {
    await watched([{ lines: [bookmark("4")], after: "is silent" }], async (_, of) => {
      assert.deepEqual(await of("berth_watch_synced"), ['{kind="IPClaim"} 0']);
    });
  });

  it("tells since when nothing was heard, and what was listed", async () => {
    await watched([{ lines: [WHOLE], after: "is silent" }], async (clock, of) => {
      clock.advance(7_000);
      assert.deepEqual(await of("berth_watch_synced"), ['{kind="IPClaim"} 1']);
      assert.deepEqual(await of("berth_watch_silence_seconds"), ['{kind="IPClaim"} 7']);
      assert.deepEqual(await of("berth_watch_relists_total"), ['{kind="IPClaim"} 1']);
      assert.deepEqual(await of("berth_watch_interruptions_total"), []);
    });
  });

  it("counts what broke, by code, and what was listed again", async () => {
    const responses: ScriptedResponse[] = [
      { lines: [WHOLE], after: "breaks" },
      { status: 410, body: { code: 410, reason: "Expired" } },
      { lines: [WHOLE], after: "is silent" },
    ];
    await watched(responses, async (clock, of) => {
      for (let i = 0; i < 8; i++) {
        clock.advance(500);
        await eventLoopTurns();
      }
      assert.deepEqual(await of("berth_watch_relists_total"), ['{kind="IPClaim"} 2']);
      assert.deepEqual(await of("berth_watch_interruptions_total"), [
        '{kind="IPClaim",code="STORE_UNAVAILABLE"} 1',
        '{kind="IPClaim",code="ENDED"} 1',
      ]);
    });
  });
});
