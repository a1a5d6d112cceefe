// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { type Json, namespaceObject, pod, workload } from "../../test/support/objects.ts";
import { startInformers } from "./informers.ts";
import { clusterStates } from "./live-and-cached.ts";

const WHOLE = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } } },
};

/** An API server of a cluster without objects, and what it says next of those under a path. */
function tellingServer() {
  const watchers = new Map<string, (line: string) => void>(); // end of the path -> who hears of it
  let revision = 10;
  const connection: Connection = {
    call: async () => ({ status: 404, body: { code: 404 } }),
    stream: async ({ path }, signal) => {
      const lines: string[] = [JSON.stringify(WHOLE)];
      let wake = () => {};
      signal.addEventListener("abort", () => wake(), { once: true });
      watchers.set(path.split("/").at(-1) ?? "", (line) => {
        lines.push(line);
        wake();
      });
      const told = async function* () {
        while (!signal.aborted) {
          yield* lines.splice(0);
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      };
      return { lines: told() };
    },
    close: () => {},
  };
  const tell = (plural: string, type: string, object: Json) => {
    const { metadata, ...rest } = object as { metadata: Json };
    const of = { uid: "u", ...metadata, resourceVersion: String(++revision) };
    watchers.get(plural)?.(JSON.stringify({ type, object: { ...rest, metadata: of } }));
  };
  return { connection, tell };
}

describe("what the watches tell of", () => {
  it("is every change of a pod, and of workloads and namespaces what is read of them", async () => {
    const { connection, tell } = tellingServer();
    const stop = new AbortController();
    const deps = { connection, clock: new ManualClock(), random: { fraction: () => 1, token: () => "t" } };
    const watches = startInformers({ ...deps, log: noopLogger }, stop.signal);
    const heard: string[] = [];
    const { cached } = clusterStates({ watches, ...deps });
    const end = cached.onChange?.((kind, key) => void heard.push(`${kind} ${key}`));
    const after = async (...told: Parameters<typeof tell>) => {
      await eventLoopTurns();
      tell(...told);
      await eventLoopTurns();
      return heard.splice(0);
    };
    const set = workload("StatefulSet", "mysql", { replicas: 2 });
    const asks = { "berth.dev/pools": "db" };
    assert.deepEqual(await after("pods", "ADDED", pod("a")), ["Pod shop/a"]);
    assert.deepEqual(await after("pods", "DELETED", pod("a")), ["Pod shop/a"]);
    assert.deepEqual(await after("statefulsets", "ADDED", set), ["StatefulSet shop/mysql"]);
    assert.deepEqual(await after("statefulsets", "MODIFIED", { ...set, status: { replicas: 2 } }), []);
    assert.deepEqual(
      await after("statefulsets", "MODIFIED", workload("StatefulSet", "mysql", { replicas: 1 })),
      ["StatefulSet shop/mysql"],
    );
    assert.deepEqual(await after("namespaces", "ADDED", namespaceObject("shop")), []);
    assert.deepEqual(await after("namespaces", "MODIFIED", namespaceObject("shop", asks)), [
      "Namespace shop",
    ]);
    assert.deepEqual(await after("namespaces", "DELETED", namespaceObject("shop", asks)), ["Namespace shop"]);
    end?.();
    assert.deepEqual(await after("pods", "ADDED", pod("a")), []);
    stop.abort();
    await watches.ended;
  });
});
