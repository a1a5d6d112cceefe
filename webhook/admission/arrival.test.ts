// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bind } from "../../allocator/bind.ts";
import { Reaper } from "../../allocator/reaper.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { applied, deniedAs, type Json, pod } from "../../test/support/objects.ts";
import { createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const LICENCE = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });

/** A pod that ran and is gone, and the review of its successor under way: mutated, not made yet. */
async function successor(world: World): Promise<Json> {
  const first = await createPod(world, LICENCE, "licence", "uid-1");
  const bindee = { name: "licence", uid: "uid-1", node: "here", token: "" };
  await bind(world.context, "shop/licence", bindee, async () => ({ fenced: false, promiseOver: false }));
  const attachment = { node: "here", containerID: "box", interface: "eth0", podUID: "uid-1", since: 0 };
  const status = { phase: "Detached", attachment: { ...attachment, detached: true } } as const;
  await world.store.report(await claimOf(world), status);
  await send(world, "/validate/pods", first, { operation: "DELETE" });
  const mutated = applied(LICENCE, await send(world, "/mutate/pods", LICENCE));
  return { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "uid-2" } };
}

async function claimOf(world: World): Promise<Stored<"claim">> {
  return (await world.authority.get("claim", "shop/licence")) ?? assert.fail("no claim");
}

describe("a pod whose predecessor is just gone", () => {
  it("is refused, and not kept, when the claim was let go between its two reviews", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await successor(world);
    await world.reaper().judgeClaim(await claimOf(world));
    assert.equal(
      deniedAs(await send(world, "/validate/pods", made)),
      "CLAIM_RELEASING: claim shop/licence was let go with the pod that had it, while this one was on its way; create the pod again",
    );
    assert.equal(await world.shelf.pod("shop", "licence"), undefined);
    await createPod(world, LICENCE, "licence", "uid-3");
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
  });

  it("keeps its claim from a reaper that looked for the pod before it was there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await successor(world);
    let looks = 0;
    const inventory = {
      ...world.shelf,
      workload: async () => "unknown" as const,
      pod: async () => {
        const found = await world.shelf.pod("shop", "licence");
        looks++;
        if (looks === 2) assert.equal(deniedAs(await send(world, "/validate/pods", made)), "");
        return found;
      },
    };
    await new Reaper(world.context, inventory).judgeClaim(await claimOf(world));
    assert.equal(looks, 2);
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
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
