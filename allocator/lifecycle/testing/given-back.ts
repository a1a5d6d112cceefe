// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { World } from "../../../test/support/world.ts";
import { release } from "../release.ts";

export async function giveBack(world: World, key: string): Promise<void> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  assert.equal(await release(world.context, seen), "released");
  await world.settle();
}
