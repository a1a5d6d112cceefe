// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { ScriptedConnection } from "../../../../kube/testing/scripted-connection.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import { NodeInformers } from "./node-informers.ts";

describe("what a node follows", () => {
  it("is its Node object as well from when somebody asks for it, though no pool has blocks", async () => {
    const connection = new ScriptedConnection();
    const watch = new NodeInformers({
      ...{ connection, node: "node-a", clock: new ManualClock(), log: noopLogger },
      random: { fraction: () => 0, token: () => "t" },
    });
    const stop = new AbortController();
    const running = watch.run(stop.signal);
    const isFollowed = () =>
      connection.queries.some(({ fieldSelector }) => fieldSelector === "metadata.name=node-a");
    const others = 4;
    for (let n = 0; n < 100 && connection.queries.length < others; n++) await turn();
    assert.deepEqual([connection.queries.length, isFollowed()], [others, false]);
    watch.followNode();
    watch.followNode();
    for (let n = 0; n < 100 && !isFollowed(); n++) await turn();
    assert.deepEqual([connection.queries.length, isFollowed()], [others + 1, true]);
    stop.abort();
    await running;
  });
});
