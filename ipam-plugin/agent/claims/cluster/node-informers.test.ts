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

  it("is namespaces only where a pool asks for their labels, and another one or the same has blocks", async () => {
    const cut = pool("cut", { blockSize: { ipv4: 26 } });
    const labelled = { namespaceSelector: { matchLabels: { team: "bank" } } };
    assert.deepEqual(await resourcesFollowed([cut]), { byNode: 4, whole: 1 });
    assert.deepEqual(await resourcesFollowed([pool("named", labelled)]), { byNode: 3, whole: 1 });
    assert.deepEqual(await resourcesFollowed([cut, pool("named", labelled)]), { byNode: 4, whole: 2 });
    const later = {
      ...pool("named", labelled),
      metadata: { name: "named", uid: "named", resourceVersion: "6" },
    };
    assert.deepEqual(await resourcesFollowed([cut, pool("named", {}), later]), { byNode: 4, whole: 2 });
  });

  it("is namespaces also where somebody asks for them, though no pool does that the API server has told of", async () => {
    const asks = (watch: NodeInformers) => watch.followNamespaces();
    assert.deepEqual(await resourcesFollowed([pool("cut", { blockSize: { ipv4: 26 } })], asks), {
      byNode: 4,
      whole: 2,
    });
  });

  it("is found out at each pool by itself: they may be thousands", async (t) => {
    const looks = t.mock.method(NodeInformers.prototype, "pools").mock;
    await resourcesFollowed(Array.from({ length: 20 }, (_, n) => pool(`p${n}`, {})));
    assert.ok(looks.callCount() < 10, `all were looked at ${looks.callCount()} times`);
  });
});

/** Pods, claims, blocks and the Node object are asked for by the node's name; pools, and namespaces, without one. */
async function resourcesFollowed(pools: readonly unknown[], meanwhile?: (watch: NodeInformers) => void) {
  const silent = { lines: [], after: "is silent" } as const;
  const lines = pools.map((object) => ({ type: "ADDED", object }));
  const connection = new ScriptedConnection(silent, silent, { lines, after: "is silent" });
  const watch = new NodeInformers({
    ...{ connection, node: "node-a", clock: new ManualClock(), log: noopLogger },
    random: { fraction: () => 0, token: () => "t" },
  });
  const stop = new AbortController();
  const running = watch.run(stop.signal);
  meanwhile?.(watch);
  for (let n = 0; n < 100; n++) await turn();
  const byNode = connection.queries.filter(({ fieldSelector }) => fieldSelector !== undefined).length;
  stop.abort();
  await running;
  return { byNode, whole: connection.queries.length - byNode };
}

function pool(name: string, spec: object) {
  return {
    ...{ apiVersion: "berth.dev/v1alpha1", kind: "IPPool" },
    metadata: { name, uid: name, resourceVersion: "5" },
    spec: { ranges: [{ cidr: `10.${name.length}.0.0/16` }], ...spec },
  };
}
