// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { noopMetrics } from "../../../allocator/base/ports.ts";
import { release } from "../../../allocator/lifecycle/release.ts";
import { claimKey } from "../../../allocator/model/claim.ts";
import type { KubeItem } from "../../../kube/api/resource.ts";
import type { EventInput } from "../../../kube/controller/event-recorder.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { DB_POOL, reservationRecord } from "../../../test/support/fixtures.ts";
import { applied, type Json, pod } from "../../../test/support/objects.ts";
import { createPod, send } from "../../../test/support/reviewing.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import { observedPod } from "../../cluster-state/projections.ts";
import type { ControllerDeps } from "../controller.ts";
import { startBinder } from "./controller.ts";

const STEP_MS = 250;
const WATCHED_MS = 120_000;
const IPS = { "berth.dev/ips": "10.20.0.70" };

/** A pod that was admitted with an address, is not scheduled, and has lost the claim to another namespace. */
async function robbed(world: World): Promise<Json> {
  const object = pod("x", { annotations: IPS });
  const made = applied(object, await send(world, "/mutate/pods", object));
  const [claim] = await world.all("claim");
  assert.ok(claim !== undefined);
  await release(world.context, claim);
  await world.settle();
  world.clock.advance(60_000);
  await createPod(world, pod("treasury", { namespace: "bank", annotations: IPS }), "treasury");
  const server = { uid: "ux", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
  return { ...made, metadata: { ...(made["metadata"] as Json), ...server } };
}

function watching<T>(all: ReadonlyMap<string, T>) {
  return {
    ...{ isSynced: true, synced: Promise.resolve(), onChange: () => () => {}, by: () => [] },
    get: (key: string) => all.get(key),
    all: () => all.entries(),
  };
}

/** A pod whose claim is gone, in a namespace that is at its limit with what cools. */
async function atItsLimit(world: World): Promise<Json> {
  const object = pod("x", { annotations: IPS });
  const made = applied(object, await send(world, "/mutate/pods", object));
  const [claim] = await world.all("claim");
  assert.ok(claim !== undefined);
  await release(world.context, claim);
  for (const reservation of await world.all("reservation"))
    await world.realStore.remove("reservation", reservation);
  for (let n = 0; n < 9; n++) await cool(world, n);
  await world.settle();
  const server = { uid: "ux", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
  return { ...made, metadata: { ...(made["metadata"] as Json), ...server } };
}

async function cool(world: World, n: number): Promise<void> {
  const of = { claim: { namespace: "shop", name: `old-${n}` }, nonce: `n${n}` };
  const releasedAt = world.clock.now();
  await world.realStore.create("reservation", { ...reservationRecord(`10.20.0.${100 + n}`, of), releasedAt });
  await world.settle();
}

type Labels = Readonly<Record<string, string>>;
type NodeHandler = (name: string, now: unknown, before: unknown) => void;

/** The only node, whose labels are changed. */
class FakeNode {
  readonly #name: string;
  readonly #nodes: Map<string, unknown>;
  readonly #handlers: NodeHandler[] = [];

  constructor(name: string, labels: Labels) {
    this.#name = name;
    this.#nodes = new Map([[name, { fenced: false, labels }]]);
  }

  get watch() {
    const onChange = (handler: NodeHandler) => {
      this.#handlers.push(handler);
      return () => {};
    };
    return { ...watching(this.#nodes), onChange };
  }

  label(labels: Labels): void {
    const before = this.#nodes.get(this.#name);
    const now = { fenced: false, labels };
    this.#nodes.set(this.#name, now);
    for (const handler of this.#handlers) handler(this.#name, now, before);
  }
}

/** What the leader told in that time, and how often it asked the API server for the pod. */
async function watched(
  world: World,
  object: Json,
  eachSecond: (second: number) => Promise<void> = async () => {},
  nodes: unknown = watching(new Map()),
): Promise<{ told: string[]; asked: number }> {
  const told: string[] = [];
  let asked = 0;
  const call = async () => {
    asked++;
    await nextTurn();
    return { status: 200, body: object };
  };
  const seen = observedPod(object as unknown as KubeItem);
  const watches = { pods: watching(new Map([["shop/x", seen]])), nodes };
  const inventory = {
    pod: async () => seen,
    workload: async () => undefined,
    fenced: async () => false,
    namespace: (name: string) => world.objects.namespace(name),
  };
  const deps = {
    ...{ context: world.context, cache: world.cache, watches, metrics: noopMetrics, refusalsNameAll: false },
    ...{ inventory: { cached: inventory, live: inventory }, enqueueForGc: () => {} },
    leadership: { leads: () => true, onGain: () => () => {} },
    connection: { call, stream: () => Promise.reject(new Error("nothing is watched")), close: () => {} },
    events: { record: ({ reason, note }: EventInput) => void told.push(`${reason}: ${note}`) },
  };
  const binder = startBinder(deps as unknown as ControllerDeps);
  for (let passed = 0; passed < WATCHED_MS; passed += STEP_MS) {
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    if (passed % 1_000 === 0) await eachSecond(passed / 1_000);
    world.clock.advance(STEP_MS);
  }
  await binder.close();
  return { told, asked };
}

describe("the binder, of a pod whose claim is gone and its address another's", () => {
  it("says so once, without the other's name, and asks less and less often", async () => {
    const pools = [{ ...DB_POOL, spec: { ...DB_POOL.spec, cooldown: "0s" } }];
    await using world = await openWorld({ pools, clock: new ManualClock() });
    const object = await robbed(world);
    const { told, asked } = await watched(world, object);
    assert.equal(told.length, 1, told.join("\n"));
    assert.match(
      String(told[0]),
      /^AddressTaken: address 10\.20\.0\.70 in pool "db" is held in another namespace; free nearby/,
    );
    assert.ok(asked < 15, `asked ${asked} times`);
    assert.deepEqual(
      (await world.all("claim")).map(({ record }) => claimKey(record)),
      ["bank/treasury"],
    );
  });
});

describe("the binder, of a pod whose namespace is at its limit", () => {
  it("says so soon and asks less and less often, while other pods of the namespace come and go", async () => {
    const limited = { ...DB_POOL.spec, cooldown: "1h", limits: { perNamespace: 4 } };
    const pools = [{ ...DB_POOL, spec: limited }];
    await using world = await openWorld({ pools, clock: new ManualClock() });
    const object = await atItsLimit(world);
    const { told, asked } = await watched(world, object, (second) => cool(world, 10 + second));
    assert.ok(told.length > 0 && told.length <= 3, told.join("\n"));
    assert.match(String(told[0]), /^LimitReached: namespace shop holds 0 addresses of pool "db"/);
    assert.ok(asked < 20, `asked ${asked} times`);
  });
});

describe("the binder, of a pod whose request was changed after its review", () => {
  /** What is told, and whether the pod is bound, where it was let in with these annotations instead of those that were reviewed. */
  async function changedTo(
    annotations: Labels,
    over: Json = {},
    reviewed: Labels = IPS,
  ): Promise<[string, boolean]> {
    await using world = await openWorld({ pools: [DB_POOL], clock: new ManualClock() });
    const object = pod("x", { annotations: reviewed });
    const made = applied(object, await send(world, "/mutate/pods", object));
    await world.settle();
    const server = { uid: "ux", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
    const metadata = made["metadata"] as Json;
    const changed = { ...(metadata["annotations"] as Json), ...annotations };
    const scheduled = {
      ...{ ...made, ...over, spec: { ...(made["spec"] as Json), nodeName: "n" } },
      metadata: { ...metadata, ...server, annotations: changed },
    };
    const { told } = await watched(world, scheduled);
    const [claim] = await world.all("claim");
    return [told.join(), claim?.record.binding?.node === "n"];
  }

  it("says so and does not bind it to what it does not ask for", async () => {
    assert.deepEqual(await changedTo({ "berth.dev/ips": "10.20.0.99" }), [
      "ClaimChanged: pod shop/x asks for 10.20.0.99 and was given 10.20.0.70 at its admission: its request was changed after berth was asked; write the request into the pod itself",
      false,
    ]);
  });

  it("does not bind it to addresses that it asks for on other interfaces", async () => {
    const reviewed = { "berth.dev/ips": "10.20.0.70@eth0,10.20.0.71@net1" };
    assert.deepEqual(await changedTo({}, {}, reviewed), ["", true]);
    assert.deepEqual(await changedTo({ "berth.dev/ips": "10.20.0.71@net1,10.20.0.70@eth0" }, {}, reviewed), [
      "",
      true,
    ]);
    const [told, isBound] = await changedTo(
      { "berth.dev/ips": "10.20.0.71@eth0,10.20.0.70@net1" },
      {},
      reviewed,
    );
    assert.match(told, /asks for 10\.20\.0\.71@eth0, 10\.20\.0\.70@net1 and was given/);
    assert.equal(isBound, false);
    assert.deepEqual(await changedTo({ "berth.dev/ips": "10.20.0.70" }, {}, reviewed), ["", true]);
  });

  it("binds it where it has what it asks for, may have any, or is up with what it was given", async () => {
    assert.deepEqual(await changedTo({}), ["", true]);
    const any = { "berth.dev/ips": "10.20.0.99", "berth.dev/fallback": "any" };
    assert.deepEqual(await changedTo(any), ["", true]);
    const status = {
      ...{ phase: "Running", podIP: "10.20.0.70", podIPs: [{ ip: "10.20.0.70" }] },
      conditions: [{ type: "Ready", status: "True" }],
    };
    assert.deepEqual(await changedTo({ "berth.dev/ips": "10.20.0.99" }, { status }), ["", true]);
  });
});

describe("the binder, of a pod on a node that its claim's pool is not for", () => {
  const forZone = (zone: string) => ({
    ...DB_POOL,
    spec: { ...DB_POOL.spec, nodeSelector: { matchLabels: { zone } } },
  });

  /** When the pod, on a node of zone b, is bound to the claim of a pool for zone a, which changes after 100 s. */
  async function boundAfter(change: (world: World, node: FakeNode) => Promise<void>): Promise<number> {
    await using world = await openWorld({ pools: [forZone("a")], clock: new ManualClock() });
    const object = pod("x", { annotations: IPS });
    const made = applied(object, await send(world, "/mutate/pods", object));
    await world.settle();
    const server = { uid: "ux", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
    const spec = { ...(made["spec"] as Json), nodeName: "n" };
    const scheduled = { ...made, spec, metadata: { ...(made["metadata"] as Json), ...server } };
    const node = new FakeNode("n", { zone: "b" });
    let at = Number.NaN;
    const look = async (second: number) => {
      if (second === 100) await change(world, node);
      const [claim] = await world.all("claim");
      if (Number.isNaN(at) && claim?.record.binding?.node === "n") at = second;
    };
    await watched(world, scheduled, look, node.watch);
    return at;
  }

  it("binds it as soon as the node has the label", async () => {
    assert.equal(await boundAfter(async (_, node) => node.label({ zone: "a" })), 101);
  });

  it("binds it as soon as the pool is for the node", async () => {
    const changed = async (world: World) => {
      const [pool] = await world.all("pool");
      assert.ok(pool !== undefined);
      await world.realStore.replace("pool", pool, forZone("b"));
      await world.settle();
    };
    assert.equal(await boundAfter(changed), 101);
  });
});
