// SPDX-License-Identifier: Apache-2.0
// The slots of a Deployment, and pods that come and go.
import assert from "node:assert/strict";
import { entries, slotsFor } from "../../../test/support/allocation-requests.ts";
import { attachmentOf, DB_POOL, granted, refusalOf } from "../../../test/support/fixtures.ts";
import { deploymentPod, workload } from "../../../test/support/objects.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import { isRefusal } from "../../base/errors.ts";
import type { Context } from "../../cache/context.ts";
import { bind } from "../../lifecycle/bind.ts";
import { readObject } from "../../manifest/kubernetes-object.ts";
import { allocateSlot } from "../slots.ts";

export const FOUR = entries("10.20.0.70;10.20.0.71;10.20.0.72;10.20.0.73");

export async function opened(): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL] });
  await world.objects.keep(granted(readObject(workload("Deployment", "web", { replicas: 4 }))));
  return world;
}

/** Admits one more pod of the Deployment: the slot it was bound, with its token, or why not. */
export async function admit(
  world: World,
  list = FOUR,
  context: Context = world.context,
): Promise<{ slot: string; token: string } | string> {
  const got = await allocateSlot(context, world.objects, slotsFor(world, list));
  await world.settle();
  if (isRefusal(got)) return refusalOf(got);
  return { slot: got.claim.record.name, token: got.claim.record.binding?.token ?? "" };
}

export async function slotOf(world: World, list = FOUR): Promise<string> {
  const got = await admit(world, list);
  return typeof got === "string" ? got : got.slot;
}

export const NO_PROOF = async () => ({ fenced: false, holdExpired: false });

/** The pod appears under a name of its own and is bound to a node. */
export async function start(
  world: World,
  name: string,
  bound: { slot: string; token: string },
): Promise<void> {
  const made = deploymentPod("web", { uid: `uid-of-${name}` });
  const metadata = { ...(made["metadata"] as object), name };
  await world.objects.keep(granted(readObject({ ...made, metadata })));
  const target = { name, uid: `uid-of-${name}`, node: "node-a", token: bound.token };
  granted(await bind(world.context, `shop/${bound.slot}`, target, NO_PROOF));
  await world.settle();
}

export async function detach(world: World, name: string, slot: string): Promise<void> {
  const seen = await world.realStore.get("claim", `shop/${slot}`);
  assert.ok(seen);
  await world.realStore.report(seen, {
    attachment: attachmentOf(name, { detached: true }),
  });
  await world.settle();
}
