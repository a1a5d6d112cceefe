// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ScriptedConnection } from "../../kube/testing/scripted-connection.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { ObservedNode } from "../cluster-state/informers.ts";
import { observedNode } from "../cluster-state/projections.ts";
import { startBlocks } from "./blocks/controller.ts";
import { startCilium } from "./cilium/controller.ts";
import type { ControllerDeps } from "./controller.ts";
import { startNodeCidrs } from "./nodes/controller.ts";
import { PassLoop } from "./pass-loop.ts";

const LEADS = { leads: () => true, onGain: () => () => {} };
const SYNCED = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "0", annotations: { "k8s.io/initial-events-end": "true" } } },
};

type NodeHandler = (name: string, now: ObservedNode | undefined, before: ObservedNode | undefined) => void;

/** One Node, and how often all were looked at. */
class OneNode {
  readonly isSynced = true;
  looks = 0;
  readonly #handlers: NodeHandler[] = [];
  #now = nodeWith({});

  *all(): Generator<readonly [string, ObservedNode], void, void> {
    this.looks++;
    yield ["a", this.#now];
  }

  get(name: string): ObservedNode | undefined {
    return name === "a" ? this.#now : undefined;
  }

  onChange(handler: NodeHandler): () => void {
    this.#handlers.push(handler);
    return () => {};
  }

  become(now: ObservedNode): void {
    const before = this.#now;
    this.#now = now;
    for (const handler of this.#handlers) handler("a", now, before);
  }
}

function nodeWith(labels: Readonly<Record<string, string>>): ObservedNode {
  const metadata = { name: "a", uid: "u", resourceVersion: String(Math.random()), labels };
  return observedNode({ metadata, spec: { podCIDRs: ["10.1.0.0/24"] } } as never);
}

const nothing = { isSynced: true, onChange: () => () => {}, get: () => undefined, *all() {}, by: () => [] };

function depsOf(world: World, nodes: OneNode): ControllerDeps {
  const deps = {
    ...{ context: world.context, cache: world.cache, leadership: LEADS, metrics: noopMetrics },
    watches: { nodes, pods: nothing, namespaces: nothing, workloads: [] },
    inventory: { cached: world.objects, live: world.objects },
    connection: new ScriptedConnection({ lines: [SYNCED], after: "is silent" }),
    events: { record: () => {} },
    nodeCIDRs: ["IPv4"],
  };
  return deps as never;
}

async function advance(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    await eventLoopTurns();
    clock.advance(50);
  }
  await eventLoopTurns();
}

const CONTROLLERS = {
  blocks: startBlocks,
  "node-cidrs": startNodeCidrs,
  cilium: (deps: ControllerDeps) => startCilium(deps, { mode: "cluster-pool" }),
};

describe("passes over nodes", () => {
  for (const [name, start] of Object.entries(CONTROLLERS)) {
    it(`of ${name} begin soon after what is read of a Node has changed, and not with its heartbeats`, async () => {
      const clock = new ManualClock();
      const pools = [poolRecord("web", "10.0.0.0/24", { blockSize: { ipv4: 28 } })];
      await using world = await openWorld({ pools, clock });
      await world.settle();
      const nodes = new OneNode();
      const controller = start(depsOf(world, nodes));
      const looksAfter = async (change: () => void) => {
        await advance(clock, 3_000);
        const before = nodes.looks;
        change();
        await advance(clock, 1_000);
        return nodes.looks > before;
      };
      await advance(clock, 4_000); // by itself a pass begins each 5 s: the third one in the 11th second, and none where it is looked for
      assert.equal(await looksAfter(() => nodes.become(nodeWith({}))), false);
      assert.equal(await looksAfter(() => nodes.become(nodeWith({ rack: "b" }))), true);
      await controller.close();
    });
  }
});

describe("a loop of passes", () => {
  it("rests after each as long as that asks for, also where something changes while it is made", async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ clock });
    const began: number[] = [];
    let change = () => {};
    const loop = new PassLoop(
      { context: { ...world.context, log: noopLogger }, leadership: LEADS, metrics: noopMetrics } as never,
      {
        ...{ name: "test", knows: () => true, hasWork: () => true, forget: () => {} },
        pass: async () => {
          began.push(clock.monotonic());
          change();
          return 4_000;
        },
      },
    );
    const controller = loop.start([
      (soon) => {
        change = soon;
        return () => {};
      },
    ]);
    await advance(clock, 20_000);
    assert.deepEqual(
      began.map((at, n) => at - (began[n - 1] ?? at)),
      [0, 4_000, 4_000, 4_000, 4_000],
    );
    await controller.close();
  });
});
