// SPDX-License-Identifier: Apache-2.0
// Pods of one Deployment that come at the same moment, reviewed by two replicas: neither knows which slots the other one tries.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { entries, slotsFor } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL, granted, refusalOf, viewOf } from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { readObject } from "../manifest/kubernetes-object.ts";
import type { Store } from "../store/store.ts";
import { allocateSlot } from "./slots.ts";

const ROUNDS = runsOf(40, 4);
const SLOTS = 12;
const LIST = entries(Array.from({ length: SLOTS }, (_, slot) => `10.20.0.${110 + slot}`).join(";"));

/** As a replica has it: each call is under way for a while, and so is its answer. */
function remote(store: Store, random: SeededRandom): Store {
  const trip = () => pause(random.below(4));
  async function slowly<T>(act: () => Promise<T>): Promise<T> {
    await trip();
    const answer = await act();
    await trip();
    return answer;
  }
  return overlay(store, {
    get: (kind, key) => slowly(() => store.get(kind, key)),
    create: (kind, record) => slowly(() => store.create(kind, record)),
    replace: (kind, seen, record) => slowly(() => store.replace(kind, seen, record)),
    remove: (kind, seen) => slowly(() => store.remove(kind, seen)),
  });
}

/** Claims of all slots, whose last pods are gone. */
async function leaveFree(world: World): Promise<void> {
  for (let slot = 0; slot < SLOTS; slot++)
    granted(await allocateSlot(world.context, world.objects, slotsFor(world, LIST)));
  for (const claim of await world.all("claim")) {
    const { binding: _, ...free } = claim.record;
    await world.realStore.replace("claim", claim, free);
  }
  await world.settle();
}

async function slotIn(world: World, context: Context): Promise<string> {
  const got = await allocateSlot(context, world.objects, slotsFor(world, LIST));
  return isRefusal(got) ? refusalOf(got) : got.claim.record.name;
}

describe("as many pods as a set has slots, which come to two replicas together", () => {
  for (const [title, prepare] of [
    ["that nobody had", async () => {}],
    ["that other pods left", leaveFree],
  ] as const) {
    for (const behind of [false, true]) {
      const views = behind ? "know nothing of each other's" : "hear of each other's at once";
      it(`have one each: slots ${title}, replicas that ${views}`, async () => {
        for (let seed = 1; seed <= ROUNDS / 4; seed++) {
          const random = new SeededRandom(seed);
          await using world = await openWorld({ pools: [DB_POOL] });
          await world.objects.keep(granted(readObject(workload("Deployment", "web", { replicas: SLOTS }))));
          await prepare(world);
          const replicas = [1, 2].map((n): Context => {
            const own = world.another(2 * seed + n, remote(world.realStore, random));
            return behind ? { ...own, view: viewOf({ pools: [DB_POOL] }) } : own;
          });
          const asked = Array.from({ length: SLOTS / 2 }, () =>
            replicas.map(async (context) => {
              await pause(random.below(6));
              return await slotIn(world, context);
            }),
          );
          const got = await Promise.all(asked.flat());
          const all = Array.from({ length: SLOTS }, (_, slot) => `web-slot-${slot}`);
          assert.deepEqual(got.toSorted(), all.toSorted(), `seed ${seed}`);
          await world.settle();
          assert.match(await slotIn(world, replicas[0] ?? world.context), /^SET_EXHAUSTED: /);
          await assertClean(world);
        }
      });
    }
  }
});
