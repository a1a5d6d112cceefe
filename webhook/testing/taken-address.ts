// SPDX-License-Identifier: Apache-2.0
// Pods that name an address which another pod has.
import type { Labels } from "../../allocator/base/ports.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { annotationsOf, namespaceObject, pod } from "../../test/support/objects.ts";
import { createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

export const TAKEN = "10.20.0.70";
export const ANY = { "berth.dev/fallback": "any" };
export const asking = (ips: string, more: Labels = ANY) => ({ "berth.dev/ips": ips, ...more });

/** A world in which pod `first` has TAKEN. */
export async function occupied(pools = [DB_POOL]): Promise<World> {
  const world = await openWorld({ pools });
  await send(world, "/validate/namespaces", namespaceObject("shop", {}, {}));
  await createPod(world, pod("first", { annotations: asking(TAKEN, {}) }), "first");
  return world;
}

export const given = (object: Parameters<typeof annotationsOf>[0]) =>
  annotationsOf(object)["berth.dev/addresses"] ?? "";

export async function addressesOf(world: World, name: string): Promise<string> {
  const found = await world.realStore.get("claim", `shop/${name}`);
  return found?.record.addresses.join() ?? "";
}
