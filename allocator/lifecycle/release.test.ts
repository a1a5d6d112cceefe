// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean, assertSound, auditWorld } from "../../test/support/assert-audit.ts";
import { FailingStore, type Failure } from "../../test/support/failing-store.ts";
import { DB_POOL, granted, refusalOf } from "../../test/support/fixtures.ts";
import { statefulPod, workload } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Context } from "../cache/context.ts";
import { GarbageCollector } from "../gc/garbage-collector.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Stored } from "../store/store.ts";
import { bind } from "./bind.ts";
import { release } from "./release.ts";
import { reserve } from "./reserve.ts";

const BOTH = "10.20.0.70,fd00:20::7";

async function claimed(world: World): Promise<Stored<"claim">> {
  const { claim } = granted(
    await reserve(world.context, ordinalAllocation(world, "mysql-0", entries(BOTH)), "pod"),
  );
  await world.settle();
  return claim;
}

/** Garbage collection passes every 20 s for as long as anything may stay behind, and half a minute of cooling. */
async function housekeeping(world: World): Promise<void> {
  const collector = world.collector();
  for (let ms = 0; ms <= 150_000; ms += 20_000) {
    await collector.pass();
    await world.settle();
    await assertSound(world);
    world.clock.advance(20_000);
  }
}

describe("release", () => {
  it("cools the reservations and deletes the claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = await claimed(world);
    world.clock.advance(7);
    assert.equal(await release(world.context, claim), "released");
    assert.equal(await world.realStore.get("claim", claim.key), undefined);
    const cooling = (await world.all("reservation")).map(({ record }) => [record.address, record.releasedAt]);
    assert.deepEqual(cooling, [
      ["10.20.0.70", world.clock.now()],
      ["fd00:20::7", world.clock.now()],
    ]);
    await assertClean(world);
  });

  it("has released what a garbage collector removed before it could, and nothing that somebody changed", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = await claimed(world);
    const { realStore } = world;
    let before: (seen: Stored<"claim">) => Promise<unknown> = (seen) => realStore.remove("claim", seen);
    const raced = overlay(realStore, {
      remove: async (kind, seen) => {
        if (kind === "claim") await before(seen as Stored<"claim">);
        return await realStore.remove(kind, seen);
      },
    });
    assert.equal(await release({ ...world.context, store: raced }, claim), "released");
    await world.settle();
    await assertClean(world);
    const again = await claimed(world);
    before = (seen) =>
      realStore.replace("claim", seen, { ...seen.record, admittedAt: world.clock.now() + 1 });
    assert.equal(await release({ ...world.context, store: raced }, again), "changed");
  });

  it("does nothing to a claim that is no longer the one that was judged", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const seen = await claimed(world);
    const pod = { name: "mysql-0", uid: "p-1", node: "node-a", token: "" };
    granted(await bind(world.context, seen.key, pod, async () => ({ fenced: false, holdExpired: false })));
    const before = world.dump();
    assert.equal(await release(world.context, seen), "changed");
    assert.equal(world.dump(), before);
  });

  it("lets nobody use the claim from its first write on", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = await claimed(world);
    const dying = world.another(5, new FailingStore(world.realStore, 1, "after"));
    await assert.rejects(release(dying, claim), /killed/);
    await world.settle();
    const pod = { name: "mysql-0", uid: "p-1", node: "node-a", token: "" };
    const bound = await bind(world.context, claim.key, pod, async () => ({
      fenced: true,
      holdExpired: true,
    }));
    assert.match(refusalOf(bound), /^CLAIM_RELEASING: /);
    const again = granted(
      await reserve(world.context, ordinalAllocation(world, "mysql-0", entries(BOTH)), "pod"),
    );
    assert.notEqual(again.claim.uid, claim.uid);
    assert.deepEqual(again.claim.record.addresses, claim.record.addresses);
  });

  it("leaves alone what another claim has by now", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = await claimed(world);
    const [v4] = await world.all("reservation");
    assert.ok(v4);
    await world.realStore.replace("reservation", v4, { ...v4.record, nonce: "somebody-else" });
    await release(world.context, claim);
    assert.equal((await world.realStore.get("reservation", v4.key))?.record.releasedAt, undefined);
  });
});

/** An act that a crash may break off, and what must be true once everything was tidied up. */
interface Act {
  readonly title: string;
  readonly run: (world: World, context: Context) => Promise<unknown>;
  readonly before: (world: World) => Promise<unknown>;
  /** The claims that may be left, by how far the act came. */
  readonly outcomes: readonly Readonly<Record<string, string>>[];
}

const ACTS: readonly Act[] = [
  {
    title: "the first reservation",
    before: async () => undefined,
    run: (world, context) => reserve(context, ordinalAllocation(world, "mysql-0", entries(BOTH)), "pod"),
    outcomes: [{ "shop/mysql-0": BOTH }, {}],
  },
  {
    title: "a swap of both addresses",
    before: claimed,
    run: (world, context) =>
      reserve(context, ordinalAllocation(world, "mysql-0", entries("10.20.0.80,fd00:20::8")), "pod"),
    outcomes: [{ "shop/mysql-0": BOTH }, { "shop/mysql-0": "10.20.0.80,fd00:20::8" }],
  },
  {
    title: "a refusal that gives the first family back",
    before: async (world) => {
      await claimed(world);
      granted(await reserve(world.context, podAllocation(world, "other", entries("fd00:20::9")), "pod"));
      await world.settle();
    },
    run: (world, context) =>
      reserve(context, podAllocation(world, "late", entries("10.20.0.90,fd00:20::9")), "pod"),
    outcomes: [{ "shop/mysql-0": BOTH, "shop/other": "fd00:20::9" }],
  },
  {
    title: "a release",
    before: claimed,
    run: async (world, context) => {
      const seen = await world.realStore.get("claim", "shop/mysql-0");
      assert.ok(seen);
      await release(context, seen);
    },
    outcomes: [{ "shop/mysql-0": BOTH }, {}],
  },
];

/** The owners of all claims here exist, so that what is left is what the act left. */
async function settlers(world: World): Promise<void> {
  await world.objects.keep(granted(readObject(workload("StatefulSet", "mysql", { replicas: 1 }))));
  const annotations = { "berth.dev/claim": "other" };
  const bare = { kind: "Pod", metadata: { name: "other", namespace: "shop", uid: "u", annotations } };
  await world.objects.keep(granted(readObject(bare)));
}

describe("a crash at each write of", () => {
  for (const { title, run, before, outcomes } of ACTS) {
    it(title, async () => {
      for (const failure of ["before", "after"] as const) {
        for (let at = 1, died = true; died; at++) {
          await using world = await openWorld({ pools: [DB_POOL] });
          await settlers(world);
          await before(world);
          const dying = new FailingStore(world.realStore, at, failure);
          await run(world, world.another(5, dying)).catch(() => undefined);
          died = dying.died;
          assert.ok(at < 20, "an act of so many writes");
          await world.settle();
          await assertSound(world);
          await housekeeping(world);
          await assertClean(world);
          const left = await world.holdings();
          assert.ok(
            outcomes.some((outcome) => JSON.stringify(outcome) === JSON.stringify(left)),
            JSON.stringify(left),
          );
          const held = Object.values(left).flatMap((list) => list.split(","));
          assert.deepEqual((await world.all("reservation")).map(({ key }) => key).sort(), held.sort());
        }
      }
    });
  }

  it("the garbage collector that tidies up, again and again", async () => {
    const dies = (world: World, at: number, failure: Failure) =>
      new GarbageCollector(world.another(at, new FailingStore(world.realStore, at, failure)), world.objects);
    for (const failure of ["before", "after"] as const) {
      await using world = await openWorld({ pools: [DB_POOL] });
      const claim = await claimed(world);
      await assert.rejects(release(world.another(5, new FailingStore(world.realStore, 2)), claim), /killed/);
      const orphan = podAllocation(world, "gone", entries("10.20.0.90"));
      await assert.rejects(
        reserve(world.another(6, new FailingStore(world.realStore, 2)), orphan, "pod"),
        /killed/,
      );
      for (let round = 0; round < 40; round++) {
        await dies(world, 1 + (round % 3), failure)
          .pass()
          .catch(() => undefined);
        await world.settle();
        await assertSound(world);
        world.clock.advance(10_000);
      }
      await housekeeping(world);
      assert.deepEqual(await auditWorld(world), []);
      assert.equal((await world.all("reservation")).length, 0);
    }
  });
});

describe("a pod that lives through it", () => {
  it("keeps its addresses, whatever was broken off and tidied up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = await claimed(world);
    await world.objects.keep(
      granted(readObject(statefulPod("mysql", 0, { uid: "p-1", spec: { nodeName: "node-a" } }))),
    );
    const pod = { name: "mysql-0", uid: "p-1", node: "node-a", token: "" };
    granted(await bind(world.context, claim.key, pod, async () => ({ fenced: false, holdExpired: false })));
    await world.objects.forget("StatefulSet", "shop", "mysql");
    await housekeeping(world);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": BOTH });
    assert.equal((await world.realStore.get("claim", claim.key))?.record.binding?.podUID, "p-1");
  });
});
