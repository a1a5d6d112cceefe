// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { applied, type Json, pod } from "../../test/support/objects.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { startInformers } from "./informers.ts";
import { clusterStates } from "./live-and-cached.ts";

/** An API server that has these pods, and no more; what it is asked for pods. */
class FewPods implements Connection {
  readonly asked: string[] = [];
  readonly #pods: readonly Json[];
  /** Of the lists that are under way, the API server has nothing to say. */
  isAway = false;

  constructor(...pods: readonly Json[]) {
    this.#pods = pods;
  }

  async call({ path, query = {} }: Call): Promise<Answer> {
    if (path.endsWith("/pods")) {
      this.asked.push(`${path}?${query["fieldSelector"]}`);
      if (this.isAway) return { status: 500, body: { reason: "InternalError" } };
      return { status: 200, body: { items: this.#pods, metadata: { resourceVersion: "9" } } };
    }
    const name = path.split("/").at(-1);
    return { status: 404, body: { reason: "NotFound", code: 404, details: { name } } };
  }

  stream(): Promise<never> {
    return Promise.reject(new Error("nothing is watched"));
  }

  close(): void {}
}

/** The pod as the API server has it once its name is made. */
function named(made: Json, name: string): Json {
  const { metadata } = made as { metadata: Json };
  const more = { name, namespace: "shop", uid: `uid-of-${name}`, resourceVersion: "9" };
  return { ...made, metadata: { ...metadata, ...more }, status: { phase: "Pending" } };
}

/** Passes for 130 s after a pod was admitted without a name, with watches that are synced and show nothing. */
async function afterHold(serverOf: (made: Json) => FewPods) {
  const clock = new ManualClock();
  const world = await openWorld({ pools: [DB_POOL], clock });
  const { metadata, ...rest } = pod("", { annotations: { "berth.dev/pools": "db" } }) as { metadata: Json };
  const { name: _, ...unnamed } = metadata;
  const raw: Json = { ...rest, metadata: { ...unnamed, generateName: "web-" } };
  const made = applied(raw, await send(world, "/mutate/pods", raw));
  const connection = serverOf(made);
  const deps = { connection, clock, random: new SeededRandom(1), log: noopLogger };
  const watches = { ...startInformers(deps, AbortSignal.abort()), isSynced: () => true };
  const { cached, live } = clusterStates({ watches, connection, clock });
  const collector = new GarbageCollector(world.context, live, { cachedState: cached });
  for (let ms = 0; ms <= 130_000; ms += 10_000) {
    await collector.pass();
    await world.settle();
    clock.advance(10_000);
  }
  const left = Object.keys(await world.holdings()).length;
  await world[Symbol.asyncDispose]();
  return { left, asked: connection.asked };
}

const LIST = "/api/v1/namespaces/shop/pods?status.phase=Pending";

describe("a hold for a pod without a name", () => {
  it("stays while the API server has its pod, whatever the watches show", async () => {
    const { left, asked } = await afterHold((made) => new FewPods(named(made, "web-a")));
    assert.equal(left, 1);
    assert.deepEqual(asked, [LIST, LIST], "it is asked when the 120 s are over, and not before");
  });

  it("ends when the API server has no such pod, and not when it does not say", async () => {
    assert.deepEqual(await afterHold(() => new FewPods(named(pod("other"), "other"))), {
      left: 0,
      asked: [LIST],
    });
    const { left } = await afterHold(() => Object.assign(new FewPods(), { isAway: true }));
    assert.equal(left, 1);
  });
});
