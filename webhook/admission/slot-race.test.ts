// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "../../allocator/store/store.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { annotationsOf, applied, deploymentPod, review } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const ROUNDS = runsOf(100, 20);
const RIVALS = ["10.30.0.10", "10.30.0.11", "10.30.0.12", "10.30.0.13"];

/** The store of another process, whose answers take their time. */
function remote(store: Store, random: SeededRandom): Store {
  const trip = () => pause(random.below(4));
  return overlay(store, {
    get: async (kind, key) => {
      await trip();
      return await store.get(kind, key);
    },
    create: async (kind, record) => {
      await trip();
      return await store.create(kind, record);
    },
    replace: async (kind, seen, record) => {
      await trip();
      return await store.replace(kind, seen, record);
    },
  });
}

/** Asks as a pod of the Deployment whose template lists this address alone; undefined when it is refused. */
async function admitted(world: World, address: string): Promise<string | undefined> {
  const object = deploymentPod("web", { annotations: { "berth.dev/ips": address } });
  const answer = createHandlers(world.admission)["/mutate/pods"](
    review(object),
    new AbortController().signal,
  );
  return annotationsOf(applied(object, await answer))["berth.dev/addresses"];
}

/** The claim as it is once its last pod is gone. */
async function leaveFree(world: World): Promise<void> {
  await admitted(world, "10.30.0.9");
  const seen = await world.realStore.get("claim", "shop/web-slot-0");
  assert.ok(seen !== undefined);
  const { binding: _, ...free } = seen.record;
  await world.realStore.replace("claim", seen, free);
}

describe("pods of one Deployment whose template changes while they are admitted", () => {
  for (const [title, prepare] of [
    ["nobody had", async () => {}],
    ["another pod left", leaveFree],
  ] as const) {
    it(`have each what it asked for, or are refused: one slot, that ${title}`, async () => {
      let served = 0;
      for (let seed = 1; seed <= ROUNDS / 2; seed++) {
        const random = new SeededRandom(seed);
        const wrap = (store: Store) => remote(store, random);
        await using world = await openWorld({ pools: [poolRecord("web", "10.30.0.0/24")], wrap });
        await prepare(world);
        const asked = RIVALS.map(async (address) => {
          await pause(random.below(10));
          return { address, got: await admitted(world, address) };
        });
        const winners = (await Promise.all(asked)).filter(({ got }) => got !== undefined);
        served += winners.length;
        for (const { address, got } of winners) assert.equal(got, address, `seed ${seed}`);
        assert.ok(winners.length <= 1, `seed ${seed}`);
        for (const { address } of winners) {
          const { claim } = (await world.realStore.get("reservation", address))?.record ?? {};
          assert.equal(claim?.name, "web-slot-0", `seed ${seed}`);
        }
      }
      assert.ok(served >= ROUNDS / 4, `${served} of ${ROUNDS / 2} rounds served a pod`);
    });
  }
});
