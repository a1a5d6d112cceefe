// SPDX-License-Identifier: Apache-2.0
// Passes of the garbage collector, in words.
import { DB_POOL } from "../../../test/support/fixtures.ts";
import type { World } from "../../../test/support/world.ts";
import type { GarbageCollector } from "../garbage-collector.ts";

export const POOLS = [DB_POOL];

export async function pass(world: World, collector: GarbageCollector, afterMs = 0): Promise<string> {
  world.clock.advance(afterMs);
  const { orphans, cooled, released, retained } = await collector.pass();
  await world.settle();
  return `${orphans} orphans, ${cooled} cooled, ${released} released, ${retained} retained`;
}

export const NOTHING = "0 orphans, 0 cooled, 0 released, 0 retained";
