// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { APPS, apiVersionOf, KRUISE } from "../../kube/api/resource.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { refTo } from "../../test/support/fixtures.ts";
import { startInformers } from "./informers.ts";
import { clusterStates } from "./live-and-cached.ts";

const WHOLE = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } } },
};
const BROKEN = { status: 500, body: { code: 500, message: "conversion webhook failed" } };

/** An API server of a cluster without objects, that has OpenKruise. `lists`: what of it can be listed now. */
function kruiseServer(lists: (path: string) => boolean): Connection {
  const call = async ({ path }: Call): Promise<Answer> => {
    const resources = KRUISE.filter((one) => path === `/apis/${apiVersionOf(one)}`);
    if (resources.length === 0) return BROKEN;
    return { status: 200, body: { resources: resources.map(({ plural }) => ({ name: plural })) } };
  };
  return {
    call,
    stream: async ({ path }, signal) => {
      if (!lists(path)) return BROKEN;
      const lines = async function* () {
        yield JSON.stringify(WHOLE);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      };
      return { lines: lines() };
    },
    close: () => {},
  };
}

function start(lists: (path: string) => boolean) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const connection = kruiseServer(lists);
  const random = { fraction: () => 1, token: () => "t" };
  const watches = startInformers({ connection, clock, random, log: noopLogger }, stop.signal);
  const { cached } = clusterStates({ watches, connection, clock });
  return {
    ...{ watches, cached, stop },
    pass: async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        await eventLoopTurns();
        clock.advance(1_000);
      }
      await eventLoopTurns();
    },
  };
}

const of = (apiVersion: string) => refTo("StatefulSet", "mysql", apiVersion);
const [APPS_V1, KRUISE_V1] = [APPS, KRUISE].map(([first]) =>
  first === undefined ? "" : apiVersionOf(first),
);

describe("a start while OpenKruise's StatefulSets cannot be listed", () => {
  it("waits for a while, goes on without them, and knows nothing of them until they are listed", async () => {
    let works = false;
    const { watches, cached, pass, stop } = start((path) => works || !path.includes("v1beta1/statefulsets"));
    await pass(5_000);
    assert.deepEqual([watches.isSynced(), watches.awaited()], [false, ["StatefulSet.apps.kruise.io"]]);
    await pass(15_000);
    assert.deepEqual([watches.isSynced(), watches.awaited()], [true, []]);
    await watches.synced;
    assert.equal(await cached.workload(of(KRUISE_V1 ?? "")), "unknown");
    assert.equal(await cached.workload(of(APPS_V1 ?? "")), undefined);
    works = true;
    await pass(30_000);
    assert.equal(await cached.workload(of(KRUISE_V1 ?? "")), undefined);
    stop.abort();
    await watches.ended;
  });

  it("waits on for what every cluster has, and says for which kind", async () => {
    const { watches, pass, stop } = start((path) => path !== "/apis/apps/v1/statefulsets");
    await pass(60_000);
    assert.deepEqual([watches.isSynced(), watches.awaited()], [false, ["StatefulSet"]]);
    stop.abort();
    await watches.ended;
  });
});
