// SPDX-License-Identifier: Apache-2.0
// Bugs of the catalogue (docs/reliability.md) that only a cluster can have: caches that lag, watches that break,
// several replicas, agents that may not say too early that a sandbox is gone. In memory; the rest is in test/api.
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type BindingEvidence, bind } from "../../allocator/lifecycle/bind.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { ask, NodeWorld, podOf } from "../../ipam-plugin/agent/testing/node-world.ts";
import { PODS } from "../../kube/api/resource.ts";
import type { LeaderTerm } from "../../kube/controller/leader-election.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ScriptedConnection, type ScriptedResponse } from "../../kube/testing/scripted-connection.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { startGcController } from "../../webhook/controllers/gc-controller.ts";
import { entries, podAllocation } from "../support/allocation-requests.ts";
import { assertSound } from "../support/assert-audit.ts";
import { ManualClock } from "../support/clock.ts";
import { DB_POOL, granted, refusalOf } from "../support/fixtures.ts";
import { type Json, pod } from "../support/objects.ts";
import { createPod, send } from "../support/reviewing.ts";
import { openWorld, type World } from "../support/world.ts";

const LICENCE = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });
const HELD = { "shop/licence": "10.20.0.70" };
const FROM_MEMORY: () => Promise<BindingEvidence> = async () => ({ fenced: false, holdExpired: true });

async function claimOf(world: World): Promise<Stored<"claim">> {
  return (await world.realStore.get("claim", "shop/licence")) ?? assert.fail("the claim is gone");
}

/** Its pod's sandbox came and went, as the agent of that node says. */
async function runOnce(world: World, uid: string): Promise<void> {
  const target = { name: "licence", uid, node: "n1", token: "" };
  granted(await bind(world.context, "shop/licence", target, FROM_MEMORY));
  const sandbox = { node: "n1", containerID: "box", interface: "eth0", podUID: uid, since: 0 };
  await world.store.report(await claimOf(world), {
    attachment: { ...sandbox, detached: true },
  });
  await world.settle();
}

/** A replica that keeps house by what it has in memory; `cached` is what its watches have told. */
function collectGarbage(world: World, context: Context, cached: ClusterState) {
  const over = new AbortController();
  let begin = (_: LeaderTerm): void => {};
  const gcLoop = startGcController({
    ...{
      context,
      inventory: { cached, live: world.objects },
      metrics: noopMetrics,
      synced: Promise.resolve(),
    },
    events: { record: () => {} },
    leadership: {
      onGain(handler) {
        begin = handler;
        return () => {};
      },
    },
  });
  begin({ signal: over.signal, holds: () => !over.signal.aborted });
  return gcLoop;
}

/** What the world's inventory was before any pod came to be. */
function blind(world: World): ClusterState {
  return Object.assign(Object.create(world.objects), { pod: async () => undefined });
}

describe("bugs of others, in a cluster's records", () => {
  it("B1 a replica whose watch has not told of a pod yet lets its claim not go", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    await createPod(world, LICENCE, "licence", "uid-1");
    await runOnce(world, "uid-1");
    const gcLoop = collectGarbage(world, world.context, blind(world));
    await eventLoopTurns(100);
    gcLoop.enqueue((await claimOf(world)).record);
    await eventLoopTurns(100);
    assert.deepEqual(await world.holdings(), HELD);
    await gcLoop.close();
  });

  it("B3 a pod's end is no proof that its sandbox ended: its successor on another node waits for the agent", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await createPod(world, LICENCE, "licence", "uid-1");
    const on = (uid: string, node: string) =>
      bind(world.context, "shop/licence", { name: "licence", uid, node, token: "" }, FROM_MEMORY);
    granted(await on("uid-1", "n1"));
    await send(world, "/validate/pods", made, { operation: "DELETE" });
    await createPod(world, LICENCE, "licence", "uid-2");
    assert.match(
      refusalOf(await on("uid-2", "n2")),
      /^CLAIM_BUSY: .* on node n1, whose sandbox was not seen to end/,
    );
    await runOnce(world, "uid-1");
    assert.equal(granted(await on("uid-2", "n2")).record.binding?.node, "n2");
  });

  it("B8 two that bind by what they remember do not bind one claim twice", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    const remembered = await claimOf(world);
    const bindTo = async (node: string, n: number) => {
      const target = { name: "licence", uid: `uid-${node}`, node, token: "" };
      return await bind(world.another(n), remembered, target, FROM_MEMORY);
    };
    granted(await bindTo("n1", 1));
    assert.match(refusalOf(await bindTo("n2", 2)), /^CLAIM_BUSY/);
  });

  it("B10 two replicas that both believe to lead free nothing that is used, and leave nothing that is not", async () => {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    await createPod(world, LICENCE, "licence", "uid-1");
    await runOnce(world, "uid-1");
    const lost = podAllocation(world, "lost", entries("10.20.0.71"));
    granted(await reserve(world.context, lost, "pod"));
    const sleeper: Context = { ...world.another(7), view: await remembered(world), serial: new KeyedMutex() };
    const houses = [
      collectGarbage(world, world.context, world.objects),
      collectGarbage(world, sleeper, blind(world)),
    ];
    for (let pass = 0; pass < 20; pass++) {
      await eventLoopTurns(100);
      (world.clock as ManualClock).advance(10_000);
    }
    await eventLoopTurns(100);
    assert.deepEqual(await world.holdings(), HELD);
    await assertSound(world);
    for (const gcLoop of houses) await gcLoop.close();
  });

  for (const [what, scene] of [
    ["broken", { lines: [], after: "breaks" }],
    ["silent for ever", { lines: [], after: "is silent" }],
  ] satisfies [string, ScriptedResponse][]) {
    it(`B14 what went while a watch was ${what} is not there any more when it is back`, async () => {
      const scenes: ScriptedResponse[] = [scene, GONE_410, { lines: ONLY_B, after: "is silent" }];
      assert.deepEqual(await seen(...scenes), [["shop/a", "shop/b"], ["shop/b"]]);
    });
  }

  it("B14 a view is what the last full pass told, and nothing else", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    granted(await reserve(world.context, podAllocation(world, "licence", entries("10.20.0.70")), "pod"));
    const cache = await remembered(world);
    assert.equal([...cache.claims()].length, 1);
    for (const type of ["relist", "synced"] as const) cache.apply("claim", { type });
    assert.deepEqual([...cache.claims()], []);
  });
});

/** What a process knows that hears of nothing any more. */
async function remembered(world: World): Promise<RecordCache> {
  const cache = new RecordCache(noopLogger);
  for (const kind of ["pool", "claim", "reservation"] as const) {
    cache.apply(kind, { type: "relist" });
    for (const stored of await world.all(kind)) cache.apply(kind, { type: "put", stored });
    cache.apply(kind, { type: "synced" });
  }
  return cache;
}

const event = (type: string, name: string, revision: number): Json => ({
  type,
  object: { metadata: { name, namespace: "shop", uid: `uid-${name}`, resourceVersion: String(revision) } },
});
const end = (revision: number): Json => ({
  type: "BOOKMARK",
  object: {
    metadata: { resourceVersion: String(revision), annotations: { "k8s.io/initial-events-end": "true" } },
  },
});
const GONE_410: ScriptedResponse = { status: 410, body: { code: 410, reason: "Expired" } };
const ONLY_B = [event("ADDED", "b", 5), end(30)];

/** What a reflector has after a full pass of `a` and `b`, and what after the scenes that follow it. */
async function seen(...scenes: readonly ScriptedResponse[]): Promise<readonly (readonly string[])[]> {
  const clock = new ManualClock();
  const stop = new AbortController();
  const pods = new Reflector({
    connection: new ScriptedConnection(
      { lines: [event("ADDED", "a", 4), event("ADDED", "b", 5), end(6)], after: "breaks" },
      ...scenes,
    ),
    ...{ resource: PODS, clock, random: { fraction: () => 0, token: () => "t" }, log: noopLogger },
    project: ({ metadata }) => metadata.uid,
  });
  const keys = () => [...pods.all()].map(([key]) => key).sort();
  const running = pods.run(stop.signal);
  await eventLoopTurns();
  const before = keys();
  for (let n = 0; n < 60; n++) {
    clock.advance(5_000);
    await eventLoopTurns();
  }
  stop.abort();
  await running;
  return [before, keys()];
}

describe("bugs of others, on a cluster's node", () => {
  let node: NodeWorld;
  afterEach(async () => await node.close());

  /** What a DEL does, and the look at the claim behind it. */
  const taken = async (name: string) => {
    await node.claims.detached({
      claim: `shop/${name}`,
      pod: { namespace: "shop", name, uid: `uid-${name}` },
      attachment: { network: "net", containerID: `box-${name}`, interface: "eth0" },
    });
    await node.settle(`shop/${name}`);
  };

  it("B4 between two sandboxes of a pod its claim is not let go", async () => {
    node = await NodeWorld.open();
    await node.assign("a", "10.20.0.70");
    assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
    await node.claims.report("shop/a");
    await node.hear("a");
    await taken("a");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
    assert.match(refusalOf(await node.bind("a", "uid-next", "node-b")), /^CLAIM_BUSY/);
    node.forget("a");
    await taken("a");
    assert.equal(await node.status("a"), "Detached box-a for uid-a");
    assert.ok(!isRefusal(await node.bind("a", "uid-next", "node-b")));
  });

  it("B6 an agent that has not seen its pods yet lets none of their claims go", async () => {
    node = await NodeWorld.open();
    await node.assign("a", "10.20.0.70");
    node.view.seePod({ namespace: "shop", name: "a" }, undefined);
    node.claims = node.another();
    await node.settle("shop/a");
    assert.equal(await node.status("a"), "not reported");
    node.see(podOf("a"));
    assert.equal(await node.said(ask("a")), `10.20.0.70 of shop/a`);
  });

  it("B7 an ADD before the first list is not judged by what is not known", async () => {
    node = await NodeWorld.open();
    node.view.isSynced = false;
    const annotations = { "berth.dev/sticky": "true" };
    await assert.rejects(
      node.said(ask("a", { annotations })),
      /^BerthError: the claims of node node-a are not loaded/,
    );
    await node.assign("a", "10.20.0.70");
    node.view.isSynced = true;
    assert.equal(await node.said(ask("a", { annotations })), "10.20.0.70 of shop/a");
  });

  it("B13 an ADD whose claim may have been let go asks the authority", async () => {
    node = await NodeWorld.open();
    await node.assign("a", "10.20.0.70");
    node.pods.delete("shop/a"); // gone, and the watch has not told yet
    node.view.seePod({ namespace: "shop", name: "a" }, undefined);
    await node.settle("shop/a");
    assert.ok(!isRefusal(await node.bind("a", "uid-next", "node-b")));
    node.view.seePod({ namespace: "shop", name: "a" }, podOf("a"));
    assert.match(await node.said(ask("a")), /^CLAIM_BUSY|^CLAIM_CHANGED/);
  });
});
