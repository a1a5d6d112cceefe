// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  applied,
  deniedAs,
  deploymentPod,
  type Json,
  pod,
  review,
  workload,
} from "../../test/support/objects.ts";
import { createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const LICENCE = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });

/** A pod that ran and is gone, and the review of its successor under way: mutated, not made yet. */
async function successor(world: World): Promise<Json> {
  const first = await createPod(world, LICENCE, "licence", "uid-1");
  const target = { name: "licence", uid: "uid-1", node: "here", token: "" };
  await bind(world.context, "shop/licence", target, async () => ({ fenced: false, holdExpired: false }));
  const attachment = { node: "here", containerID: "box", interface: "eth0", podUID: "uid-1", since: 0 };
  const status = { phase: "Detached", attachment: { ...attachment, detached: true } } as const;
  await world.store.report(await claimOf(world), status);
  await send(world, "/validate/pods", first, { operation: "DELETE" });
  const mutated = applied(LICENCE, await send(world, "/mutate/pods", LICENCE));
  return { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "uid-2" } };
}

async function claimOf(world: World): Promise<Stored<"claim">> {
  return (await world.realStore.get("claim", "shop/licence")) ?? assert.fail("no claim");
}

describe("a pod whose predecessor is just gone", () => {
  it("has its claim made again when it was let go between its two reviews", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await successor(world);
    await world.collector().judgeClaim(await claimOf(world));
    assert.deepEqual(await world.holdings(), {});
    assert.equal(deniedAs(await send(world, "/validate/pods", made)), "");
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("is refused, and not kept, when somebody else has the address by then", async () => {
    await using world = await openWorld({ pools: [poolRecord("db", "10.20.0.0/24", { cooldown: "0s" })] });
    const made = await successor(world);
    await world.collector().judgeClaim(await claimOf(world));
    await world.settle();
    const other = pod("other", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    await createPod(world, other, "other");
    assert.match(
      deniedAs(await send(world, "/validate/pods", made)),
      /^ADDRESS_TAKEN: .* is held by shop\/other/,
    );
    assert.equal(await world.objects.pod("shop", "licence"), undefined);
  });

  it("is refused, and not kept, when another pod of its name has changed the claim that it was to follow", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await successor(world);
    const plain = pod("licence");
    const mutated = applied(plain, await send(world, "/mutate/pods", plain));
    const other = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.80" } });
    await send(world, "/validate/pods", await createPod(world, other, "licence", "uid-3"), {
      operation: "DELETE",
    });
    const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "uid-4" } };
    assert.match(
      deniedAs(await send(world, "/validate/pods", made)),
      /^CLAIM_CHANGED: claim shop\/licence holds 10\.20\.0\.80 now, and this pod was given 10\.20\.0\.70/,
    );
    assert.equal(await world.objects.pod("shop", "licence"), undefined);
  });

  it("keeps its claim from a garbage collector that looked for the pod before it was there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await successor(world);
    let looks = 0;
    const inventory = {
      ...world.objects,
      workload: async () => "unknown" as const,
      pod: async () => {
        const found = await world.objects.pod("shop", "licence");
        looks++;
        if (looks === 2) assert.equal(deniedAs(await send(world, "/validate/pods", made)), "");
        return found;
      },
    };
    await new GarbageCollector(world.context, inventory).judgeClaim(await claimOf(world));
    assert.equal(looks, 2);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("is refused as a second pod of its name, which neither takes the first one away nor changes its claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, LICENCE, "licence", "uid-1");
    const before = (await claimOf(world)).record;
    const second = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.80" } });
    const mutated = applied(second, await send(world, "/mutate/pods", second));
    const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "uid-2" } };
    // it came to be while this one was under review
    const looks = { first: true };
    const pods = async (namespace: string, name: string) => {
      const there = looks.first ? undefined : await world.objects.pod(namespace, name);
      looks.first = false;
      return there;
    };
    const { objects } = world;
    const inventory = {
      pod: pods,
      workload: objects.workload.bind(objects),
      namespace: objects.namespace.bind(objects),
      fenced: objects.fenced.bind(objects),
      keep: async () => {},
      forget: objects.forget.bind(objects),
    };
    const admission = { ...world.admission, inventory, embedded: inventory };
    const answer = await createHandlers(admission)["/validate/pods"](
      review(made),
      new AbortController().signal,
    );
    assert.match(deniedAs(answer), /^CLAIM_BUSY: another pod shop\/licence is there/);
    assert.equal((await world.objects.pod("shop", "licence"))?.uid, "uid-1");
    assert.deepEqual((await claimOf(world)).record, before);
  });

  it("leaves alone the claim of another pod that its annotation names", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, LICENCE, "licence");
    const before = (await claimOf(world)).revision;
    const forged = pod("imitator", { uid: "u", annotations: { "berth.dev/claim": "licence" } });
    assert.equal(deniedAs(await send(world, "/validate/pods", forged)), "");
    assert.equal((await claimOf(world)).revision, before);
  });
});

/** The second review of a Deployment's pod that asks for an entry of a list, where `keep` is what keeps it. */
async function reviewOfList(world: World, keep: (object: KubeObject) => Promise<void>): Promise<string> {
  const annotations = { "berth.dev/ips": "10.20.0.70-10.20.0.72" };
  await send(world, "/validate/workloads", workload("Deployment", "web", { annotations, replicas: 1 }));
  const asked = deploymentPod("web", { annotations });
  const mutated = applied(asked, await send(world, "/mutate/pods", asked));
  const metadata = { ...(mutated["metadata"] as Json), name: "web-5d9c7b-1", uid: "uid-1" };
  const { objects } = world;
  const embedded = {
    pod: objects.pod.bind(objects),
    workload: objects.workload.bind(objects),
    namespace: objects.namespace.bind(objects),
    fenced: objects.fenced.bind(objects),
    forget: objects.forget.bind(objects),
    keep,
  };
  const handlers = createHandlers({ ...world.admission, inventory: embedded, embedded });
  return deniedAs(
    await handlers["/validate/pods"](review({ ...mutated, metadata }), new AbortController().signal),
  );
}

async function boundIn(world: World) {
  const claims = await world.all("claim");
  return claims.map(({ key, record: { binding } }) => [key, binding?.podName, binding?.podUID]);
}

describe("a pod of a list", () => {
  it("has its entry, though its hold was over and ended before it was kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const ends: string[] = [];
    const answer = await reviewOfList(world, async (object) => {
      world.clock.advance(HOLD_TIMEOUT_MS);
      for (const claim of await world.all("claim"))
        ends.push((await world.collector().judgeClaim(claim)).kind);
      await world.objects.keep(object);
    });
    assert.equal(answer, "");
    assert.deepEqual(ends, ["release-hold"]);
    assert.deepEqual(await boundIn(world), [["shop/web-slot-0", "web-5d9c7b-1", "uid-1"]]);
  });

  it("has its entry, though the stack ended as soon as it was kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const dead = reviewOfList(world, async (object) => {
      await world.objects.keep(object);
      throw new BerthError("STORE_UNAVAILABLE", "the stack ended");
    });
    await assert.rejects(dead, /the stack ended/);
    world.clock.advance(HOLD_TIMEOUT_MS);
    for (const claim of await world.all("claim")) await world.collector().judgeClaim(claim);
    assert.deepEqual(await boundIn(world), [["shop/web-slot-0", "web-5d9c7b-1", "uid-1"]]);
  });
});
