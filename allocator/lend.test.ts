// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../test/support/books.ts";
import { attachmentOf, DB_POOL, granted, refusalOf } from "../test/support/fixtures.ts";
import { entries, podIntent, slotsFor } from "../test/support/intents.ts";
import { deploymentPod, workload } from "../test/support/objects.ts";
import { overlay } from "../test/support/overlay.ts";
import { openWorld, type World } from "../test/support/world.ts";
import { bind } from "./bind.ts";
import type { Context } from "./context.ts";
import { isRefusal } from "./errors.ts";
import { readObject } from "./kube-object.ts";
import { lendSlot, previewSlot } from "./lend.ts";
import { describePreview } from "./preview.ts";
import { reserve } from "./reserve.ts";

const FOUR = entries("10.20.0.70;10.20.0.71;10.20.0.72;10.20.0.73");

async function opened(): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL] });
  await world.shelf.keep(granted(readObject(workload("Deployment", "web", { replicas: 4 }))));
  return world;
}

/** Admits one more pod of the Deployment: the slot it was lent, with its token, or why not. */
async function admit(
  world: World,
  list = FOUR,
  context: Context = world.context,
): Promise<{ slot: string; token: string } | string> {
  const got = await lendSlot(context, world.shelf, slotsFor(world, list));
  await world.settle();
  if (isRefusal(got)) return refusalOf(got);
  return { slot: got.claim.record.name, token: got.claim.record.binding?.token ?? "" };
}

async function slotOf(world: World, list = FOUR): Promise<string> {
  const got = await admit(world, list);
  return typeof got === "string" ? got : got.slot;
}

const NO_PROOF = async () => ({ fenced: false, promiseOver: false });

/** The pod appears under a name of its own and is bound to a node. */
async function start(world: World, name: string, lent: { slot: string; token: string }): Promise<void> {
  const made = deploymentPod("web", { uid: `uid-of-${name}` });
  const metadata = { ...(made["metadata"] as object), name };
  await world.shelf.keep(granted(readObject({ ...made, metadata })));
  const bindee = { name, uid: `uid-of-${name}`, node: "node-a", token: lent.token };
  granted(await bind(world.context, `shop/${lent.slot}`, bindee, NO_PROOF));
  await world.settle();
}

async function detach(world: World, name: string, slot: string): Promise<void> {
  const seen = await world.authority.get("claim", `shop/${slot}`);
  assert.ok(seen);
  await world.authority.report(seen, {
    phase: "Detached",
    attachment: attachmentOf(name, { detached: true }),
  });
  await world.settle();
}

async function lentTo(world: World, name: string): Promise<{ slot: string; token: string }> {
  const lent = await admit(world);
  assert.ok(typeof lent !== "string", String(lent));
  await start(world, name, lent);
  return lent;
}

describe("a set of fifty", () => {
  it("of which one slot is free costs the reads of that one", async () => {
    await using world = await opened();
    const list = entries(Array.from({ length: 50 }, (_, i) => `10.20.0.${110 + i}`).join(";"));
    const lent: { slot: string; token: string }[] = [];
    for (let i = 0; i < 50; i++) {
      const got = await admit(world, list);
      assert.ok(typeof got !== "string");
      lent.push(got);
      await start(world, `web-${i}`, got);
    }
    assert.equal(new Set(lent.map(({ slot }) => slot)).size, 50);
    await world.shelf.forget("Pod", "shop", "web-37");
    await detach(world, "web-37", "web-slot-37");
    await world.settle();
    const read: string[] = [];
    const { authority } = world;
    const store = overlay(authority, {
      get: async (kind, key) => {
        if (kind === "claim") read.push(key);
        return await authority.get(kind, key);
      },
    });
    const got = await lendSlot({ ...world.context, store }, world.shelf, slotsFor(world, list));
    assert.equal(granted(got).claim.record.name, "web-slot-37");
    assert.deepEqual(read, ["shop/web-slot-37"]);
  });
});

describe("a set of four", () => {
  it("is filled in its order, and refuses the fifth in words", async () => {
    await using world = await opened();
    for (let n = 0; n < 4; n++) assert.equal(await slotOf(world), `web-slot-${n}`);
    assert.deepEqual(Object.values(await world.holdings()), [
      "10.20.0.70",
      "10.20.0.71",
      "10.20.0.72",
      "10.20.0.73",
    ]);
    const before = world.dump();
    assert.equal(
      await slotOf(world),
      "SET_EXHAUSTED: all 4 entries of the set are in use: 10.20.0.70 (web-slot-0) is lent to a pod that was admitted less than 120 s ago; 10.20.0.71 (web-slot-1) is lent to a pod that was admitted less than 120 s ago; 10.20.0.72 (web-slot-2) is lent to a pod that was admitted less than 120 s ago; 10.20.0.73 (web-slot-3) is lent to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them",
    );
    assert.equal(world.dump(), before);
    await assertClean(world);
  });

  it("names the pod that has a slot", async () => {
    await using world = await opened();
    await start(
      world,
      "web-a",
      (await admit(world, entries("10.20.0.70"))) as { slot: string; token: string },
    );
    assert.equal(
      await slotOf(world, entries("10.20.0.70")),
      "SET_EXHAUSTED: all 1 entries of the set are in use: 10.20.0.70 (web-slot-0) is lent to pod web-a; add entries for replicas and maxSurge, or lower them",
    );
  });

  it("lends a slot again when its pod and its sandbox are gone, and not before", async () => {
    await using world = await opened();
    for (const name of ["web-a", "web-b", "web-c", "web-d"]) await lentTo(world, name);
    await world.shelf.forget("Pod", "shop", "web-c");
    assert.match(await slotOf(world), /^SET_EXHAUSTED: .*\(web-slot-2\) is lent to pod web-c;/);
    await detach(world, "web-c", "web-slot-2");
    assert.equal(await slotOf(world), "web-slot-2");
    assert.match(await slotOf(world), /^SET_EXHAUSTED: /);
    await assertClean(world);
  });

  it("lends a slot again when the pod that it was promised to never came", async () => {
    await using world = await opened();
    const first = await admit(world, entries("10.20.0.70"));
    assert.ok(typeof first !== "string");
    world.clock.advance(119_999);
    assert.match(await slotOf(world, entries("10.20.0.70")), /^SET_EXHAUSTED: /);
    world.clock.advance(1);
    const second = await admit(world, entries("10.20.0.70"));
    assert.ok(typeof second !== "string");
    assert.deepEqual([second.slot, second.token === first.token], ["web-slot-0", false]);
    const late = { name: "web-late", uid: "u", node: "node-a", token: first.token };
    assert.match(refusalOf(await bind(world.context, "shop/web-slot-0", late, NO_PROOF)), /^CLAIM_BUSY: /);
  });

  it("passes over an address that somebody else has", async () => {
    await using world = await opened();
    granted(await reserve(world.context, podIntent(world, "other", entries("10.20.0.70"))));
    await world.settle();
    assert.equal(await slotOf(world), "web-slot-1");
  });

  it("stops at a refusal that no other slot would escape", async () => {
    await using world = await opened();
    assert.match(
      await slotOf(world, entries("10.99.0.1;10.20.0.70")),
      /^ADDRESS_OUTSIDE: address 10\.99\.0\.1 is in no pool/,
    );
  });

  it("follows a list that was edited where its pods are gone", async () => {
    await using world = await opened();
    const lent = await lentTo(world, "web-a");
    assert.equal(await slotOf(world, entries("10.20.0.80;10.20.0.71")), "web-slot-1");
    await world.shelf.forget("Pod", "shop", "web-a");
    await detach(world, "web-a", lent.slot);
    assert.equal(await slotOf(world, entries("10.20.0.80;10.20.0.71")), "web-slot-0");
    assert.equal((await world.holdings())["shop/web-slot-0"], "10.20.0.80");
    await assertClean(world);
  });

  it("is there again at once when its Deployment was deleted with Retain and comes back", async () => {
    await using world = await opened();
    const kept = { ...entries("10.20.0.70"), retention: { whenDeleted: "Retain" as const } };
    const lent = await admit(world, kept);
    assert.ok(typeof lent !== "string");
    await start(world, "web-a", lent);
    await world.shelf.forget("Pod", "shop", "web-a");
    await detach(world, "web-a", lent.slot);
    await world.shelf.forget("Deployment", "shop", "web");
    assert.equal((await world.reaper().pass()).retained, 1);
    await world.settle();
    assert.equal(await slotOf(world, kept), "web-slot-0");
    assert.equal((await world.authority.get("claim", "shop/web-slot-0"))?.record.retained, undefined);
  });

  it("lends each slot once, however many ask at the same time", async () => {
    await using world = await opened();
    const answers = await Promise.all(
      Array.from({ length: 7 }, (_, n) => admit(world, FOUR, n % 2 === 0 ? world.context : world.another(n))),
    );
    const lent = answers.filter((answer) => typeof answer !== "string");
    assert.ok(lent.length <= 4 && lent.length >= 1);
    assert.equal(new Set(lent.map(({ slot }) => slot)).size, lent.length);
    assert.ok(answers.every((answer) => typeof answer !== "string" || answer.startsWith("SET_EXHAUSTED: ")));
    for (const { slot, token } of lent) {
      assert.equal((await world.authority.get("claim", `shop/${slot}`))?.record.binding?.token, token);
    }
    await assertClean(world);
  });
});

describe("previewSlot", () => {
  it("stops where lending would", async () => {
    await using world = await opened();
    const list = entries("10.99.0.1;10.20.0.70");
    const would = await previewSlot(world.context, world.shelf, slotsFor(world, list));
    assert.equal(refusalOf(would), await slotOf(world, list));
  });

  it("says which slot it would be, or why none, and writes nothing", async () => {
    await using world = await opened();
    for (let n = 0; n <= 4; n++) {
      const before = world.dump();
      const would = await previewSlot(world.context, world.shelf, slotsFor(world, FOUR));
      assert.equal(world.dump(), before);
      if (n < 4)
        assert.equal(describePreview("pod", granted(would)), `pod would get 10.20.0.7${n} from pool db`);
      const said = isRefusal(would) ? refusalOf(would) : "";
      const got = await slotOf(world);
      assert.equal(said, n < 4 ? "" : got);
    }
  });
});
