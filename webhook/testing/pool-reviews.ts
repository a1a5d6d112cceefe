// SPDX-License-Identifier: Apache-2.0
// A pool that was reviewed and stands, and what its reviews say.
import assert from "node:assert/strict";
import { deniedAs, type Json, pod, poolObject } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const ROUTE = "/validate/pools";
export const DB = poolObject("db", {
  ranges: [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1" }],
  cooldown: "10s",
});

export async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, ROUTE, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

export async function opened(): Promise<World> {
  const world = await openWorld({});
  assert.equal(await said(world, DB), "");
  return world;
}

export async function names(world: World): Promise<string[]> {
  return (await world.all("pool")).map(({ key }) => key);
}

export const pin = (name: string, address: string) =>
  pod(name, { annotations: { "berth.dev/ips": address } });
