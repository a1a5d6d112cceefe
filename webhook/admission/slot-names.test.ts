// SPDX-License-Identifier: Apache-2.0
// Pods, and claims made by hand, that are called like the claim of a set's slot.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import {
  claimObject,
  deniedAs,
  deploymentPod,
  type Json,
  ownedBy,
  pod,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const POOLS = [DB_POOL];
const LIST = { "berth.dev/ips": "10.20.0.70;10.20.0.71" };
const ASKS = { "berth.dev/pools": "db" };

async function opened(kind = "Deployment", apiVersion = "apps/v1"): Promise<World> {
  const world = await openWorld({ pools: POOLS });
  const set = { ...workload(kind, "web", { replicas: 1, annotations: LIST }), apiVersion };
  assert.equal(deniedAs(await send(world, "/validate/workloads", set)), "");
  return world;
}

async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, "/validate/claims", object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

describe("a pod that is called like a slot", () => {
  for (const [kind, apiVersion] of [
    ["Deployment", "apps/v1"],
    ["CloneSet", "apps.kruise.io/v1alpha1"],
  ] as const) {
    it(`of a ${kind} that is there is refused, and no pod of the set loses it`, async () => {
      await using world = await opened(kind, apiVersion);
      const before = world.dump();
      const words = `CLAIM_BUSY: claim shop/web-slot-1 belongs to ${kind} web, slot 1; give this pod another name`;
      for (const annotations of [ASKS, { "berth.dev/ips": "10.20.0.80" }, { "berth.dev/sticky": "true" }]) {
        assert.equal(await admitPod(world, pod("web-slot-1", { annotations })), words);
        const dry = await send(world, "/mutate/pods", pod("web-slot-1", { annotations }), { dryRun: true });
        assert.equal(deniedAs(dry), words);
      }
      assert.equal(world.dump(), before);
      const owner = kind === "Deployment" ? undefined : ownedBy(kind, "web", apiVersion);
      for (const [at, address] of ["10.20.0.70", "10.20.0.71"].entries()) {
        const own = owner && pod(`web-${at}x`, { annotations: LIST, owner });
        assert.equal(
          await admitPod(world, own ?? deploymentPod("web", { annotations: LIST })),
          address,
          kind,
        );
      }
      await assertClean(world);
    });
  }

  it("is let be where the list has no such entry, or no such set is there", async () => {
    await using world = await opened();

    for (const name of ["web-slot-2", "other-slot-0", "web-slot-01", "web-slot-0x"])
      assert.match(await admitPod(world, pod(name, { annotations: ASKS })), /^10\.20\.0\./);
  });

  it("is let be where it asks for nothing", async () => {
    await using world = await opened();
    assert.equal(await admitPod(world, pod("web-slot-0")), "");
    assert.equal(await admitPod(world, deploymentPod("web", { annotations: LIST })), "10.20.0.70");
    assert.equal(await admitPod(world, pod("web-slot-0")), "");
  });

  it("has the claim that it had before the set came", async () => {
    await using world = await openWorld({ pools: POOLS });
    const bare = pod("web-slot-1", { annotations: { "berth.dev/ips": "10.20.0.80" } });
    assert.equal(await admitPod(world, bare), "10.20.0.80");
    const set = workload("Deployment", "web", { replicas: 1, annotations: LIST });
    const { warnings = [] } = await send(world, "/validate/workloads", set);
    assert.match(warnings.join(), /^claim shop\/web-slot-1 is held for a Pod of that name/);
    assert.equal(await admitPod(world, bare), "10.20.0.80");
  });

  it("is refused as an ordinal, too, whose claim was not made in time", async () => {
    await using world = await opened();
    assert.equal(
      await admitPod(world, statefulPod("web-slot", 0, { annotations: ASKS })),
      "CLAIM_BUSY: the name of ordinal 0 is taken by claim shop/web-slot-0 of Deployment web, slot 0: rename or delete Deployment web; if it is gone, the claim is released when its pods are gone: try again in a moment",
    );
  });
});

describe("a claim made by hand that is called like a slot", () => {
  const request = { addresses: ["10.20.0.80"] };
  const words =
    "REQUEST_INVALID: metadata.name web-slot-0 is that of the claim of slot 0 of a set web, which Berth alone makes: this claim would take the slot from the pods of web; choose another name, or write the address into berth.dev/ips of the workload's template";

  for (const [title, identity] of [
    ["says nothing of it", undefined],
    ["is for the Deployment", { kind: "Deployment", apiVersion: "apps/v1", name: "web" }],
    ["is for a pod of that name", { kind: "Pod", apiVersion: "v1", name: "web-slot-0" }],
  ] as const) {
    it(`and ${title} is refused, whether the set is there or not`, async () => {
      const claim = claimObject("web-slot-0", { request, ...(identity && { identity }) });
      for (const world of [await openWorld({ pools: POOLS }), await opened()]) {
        await using _ = world;
        const before = world.dump();
        assert.equal(await said(world, claim, { dryRun: true }), words);
        assert.equal(await said(world, claim), words);
        assert.equal(world.dump(), before);
        assert.equal(await admitPod(world, deploymentPod("web", { annotations: LIST })), "10.20.0.70");
      }
    });
  }

  it("is made for an ordinal of that name, unless such a set is there", async () => {
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "web-slot", ordinal: 0 };
    const claim = claimObject("web-slot-0", { request, identity });
    await using alone = await openWorld({ pools: POOLS });
    assert.equal(await said(alone, claim), "");
    await using world = await opened();
    assert.match(await said(world, claim), /^CLAIM_BUSY: the name of ordinal 0 is taken by claim /);
  });

  it("stays its author's where it was there before", async () => {
    await using world = await openWorld({ pools: POOLS });
    const made = claimObject("web-slot-0", { request });
    const { realStore } = world;
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "web-slot", ordinal: 0 };
    assert.equal(await said(world, claimObject("web-slot-0", { request, identity })), "");
    assert.equal(await said(world, made), "", "sent again, for somebody else");
    assert.equal((await realStore.get("claim", "shop/web-slot-0"))?.record.identity.kind, "Pod");
    assert.equal(await admitPod(world, pod("web-slot-0")), "10.20.0.80");
  });
});
