// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { CLAIMS, type KubeItem } from "../api/resource.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { ScriptedConnection, type ScriptedResponse } from "../testing/scripted-connection.ts";
import { Reflector } from "./reflector.ts";

const event = (type: string, revision: number, a: string, status = {}) => ({
  type,
  object: {
    metadata: { name: "x", namespace: "n", uid: "u", resourceVersion: `${revision}`, labels: { a } },
    status,
  },
});
const SYNCED = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "5", annotations: { "k8s.io/initial-events-end": "true" } } },
};

/** What is told while the responses are given, and which revisions were read; the label `a` is kept, and found by. */
async function reflected(...responses: readonly ScriptedResponse[]) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const read: string[] = [];
  const project = ({ metadata: { resourceVersion, labels = {} } }: KubeItem) => {
    read.push(resourceVersion);
    return { ...labels };
  };
  const reflector = new Reflector<Readonly<Record<string, string>>>({
    ...{ connection: new ScriptedConnection(...responses), resource: CLAIMS, clock, log: noopLogger },
    ...{ random: { fraction: () => 0, token: () => "t" }, project },
    indexes: { a: ({ a = "" }) => [a] },
  });
  const told: string[] = [];
  reflector.onChange((key, now, before) => {
    const found = ["1", "2"].filter((a) => reflector.by("a", a).length > 0);
    told.push(`${key} ${before?.["a"]} -> ${now?.["a"]}, found by ${found.join()}`);
  });
  const running = reflector.run(stop.signal);
  for (let n = 0; n < 6; n++) {
    await eventLoopTurns();
    clock.advance(1_000);
  }
  await eventLoopTurns();
  stop.abort();
  await running;
  return { told, read, kept: reflector.get("n/x") };
}

describe("a reflector", () => {
  it("tells of changes of what is kept, and of no others", async () => {
    const { told, kept } = await reflected({
      lines: [
        SYNCED,
        event("ADDED", 6, "1"),
        event("MODIFIED", 7, "1"),
        event("MODIFIED", 8, "1", { phase: "Running" }),
        event("MODIFIED", 9, "2"),
        event("MODIFIED", 10, "2", { phase: "Failed" }),
        event("DELETED", 11, "2"),
        event("ADDED", 12, "2"),
      ],
      after: "is silent",
    });
    assert.deepEqual(told, [
      "n/x undefined -> 1, found by 1",
      "n/x 1 -> 2, found by 2",
      "n/x 2 -> undefined, found by ",
      "n/x undefined -> 2, found by 2",
    ]);
    assert.deepEqual(kept, { a: "2" });
  });

  it("knows the revision of a change that it tells nobody of, and does not read it again in a full pass", async () => {
    const { told, read } = await reflected(
      { lines: [SYNCED, event("ADDED", 6, "1"), event("MODIFIED", 7, "1")], after: "breaks" },
      { status: 410, body: { code: 410, reason: "Expired" } },
      { lines: [event("ADDED", 7, "1"), SYNCED], after: "is silent" },
    );
    assert.deepEqual(read, ["6", "7"]);
    assert.deepEqual(told, ["n/x undefined -> 1, found by 1"]);
  });
});
