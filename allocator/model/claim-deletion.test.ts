// SPDX-License-Identifier: Apache-2.0
// A claim that somebody deleted past admission while a pod had it. Only Kubernetes has such claims; here they are written.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { entries, ordinalAllocation, slotsFor } from "../../test/support/allocation-requests.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  refusalOf,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { readClaim } from "../cache/reader.ts";
import { dryRun } from "../demand/allocation-dry-run.ts";
import { predictFromCache } from "../demand/cache-prediction.ts";
import { allocateSlot, dryRunSlot } from "../demand/slots.ts";
import { release } from "../lifecycle/release.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { Stored } from "../store/store.ts";
import type { Claim } from "./claim.ts";

const DOOMED = claimRecord({ deleting: true, binding: bindingTo("mysql-0", "node-a") });
const DETACHED: Claim = {
  ...DOOMED,
  status: { attachment: attachmentOf("mysql-0", { detached: true }) },
};
const WAITS =
  "CLAIM_RELEASING: claim shop/mysql-0 is being deleted; its addresses are given back when the sandbox of pod mysql-0 " +
  "on node node-a has ended; try again then";
const KEPT =
  "CLAIM_RELEASING: the addresses of claim shop/mysql-0 were given back, and its record stays for a finalizer " +
  "(somebody else's); whoever set that has to take it away";
const SOON = "CLAIM_RELEASING: claim shop/mysql-0 is being deleted; try again in a moment";

async function put(world: World, claim: Claim): Promise<Stored<"claim">> {
  for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
  const { stored } = await world.realStore.create("claim", claim);
  await world.settle();
  return stored;
}

describe("a claim that is being deleted", () => {
  it("is not reserved again, with the addresses that it has or others, and nothing changes", async () => {
    for (const [claim, words] of [
      [DOOMED, WAITS],
      [DETACHED, SOON],
      [{ ...DOOMED, handMade: true }, WAITS],
      [{ ...DOOMED, releasing: true }, KEPT],
    ] as const) {
      await using world = await openWorld({ pools: [DB_POOL] });
      await put(world, claim);
      for (const asked of ["10.20.0.70", "10.20.0.71"]) {
        const allocation = ordinalAllocation(world, "mysql-0", entries(asked));
        assert.equal(refusalOf(await dryRun(world.context, allocation)), words);
        assert.deepEqual(predictFromCache(world.context, allocation), { kind: "unknown" });
        if (claim.releasing === true) continue; // whoever finds that goes on with it
        const before = world.dump();
        assert.equal(refusalOf(await reserve(world.context, allocation, "pod")), words);
        assert.equal(world.dump(), before);
      }
    }
  });

  it("keeps its addresses from others", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await put(world, DOOMED);
    const refusal = refusalOf(
      await reserve(world.context, ordinalAllocation(world, "pg-0", entries("10.20.0.70")), "pod"),
    );
    assert.match(refusal, /^ADDRESS_TAKEN: address 10\.20\.0\.70 in pool "db" is held by shop\/mysql-0 /);
  });

  it("may be gone by now: what the view shows of it is looked up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const stale = { ...world.context, view: viewOf({ pools: [DB_POOL], claims: [DOOMED] }) };
    assert.equal(await readClaim(stale, "shop/mysql-0"), undefined);
    const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
    assert.equal(granted(await dryRun(stale, allocation)).kind, "dry-run");
    assert.equal(granted(await reserve(stale, allocation, "pod")).made, true);
  });

  it("is not allocated as a slot, and the next one is", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
    const binding = bindingTo("web-x", "node-a", { token: "t1" });
    const slot = { ...DETACHED, name: "web-slot-0", identity, binding };
    const attachment = attachmentOf("web-x", { detached: true });
    await put(world, { ...slot, status: { attachment } });
    const both = slotsFor(world, entries("10.20.0.70;10.20.0.71"));
    const one = slotsFor(world, entries("10.20.0.70"));
    const words =
      "SET_EXHAUSTED: the only entry of the list is in use: claim shop/web-slot-0 is being deleted; try again in a moment; " +
      "add entries for replicas and maxSurge, or lower them";
    assert.equal(refusalOf(await dryRunSlot(world.context, world.objects, one)), words);
    assert.equal(refusalOf(await allocateSlot(world.context, world.objects, one)), words);
    const bound = granted(await allocateSlot(world.context, world.objects, both));
    assert.equal(bound.claim.record.name, "web-slot-1");
  });

  it("is not allocated while nobody has it either", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { binding: _, ...unbound } = DOOMED;
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
    await put(world, { ...unbound, name: "web-slot-0", identity });
    const got = await allocateSlot(world.context, world.objects, slotsFor(world, entries("10.20.0.70")));
    assert.match(refusalOf(got), /claim shop\/web-slot-0 is being deleted; try again in a moment/);
  });

  it("is released without being deleted a second time", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const stored = await put(world, DETACHED);
    assert.equal(await release(world.context, stored), "released");
    const left = await world.realStore.get("claim", "shop/mysql-0");
    assert.deepEqual([left?.record.releasing, left?.record.binding], [true, undefined]);
    const reservation = await world.realStore.get("reservation", "10.20.0.70");
    assert.equal(reservation?.record.releasedAt, world.clock.now());
  });

  describe("and is kept by a finalizer of somebody else after it was given back", () => {
    /** Its addresses cool, and the store says whose finalizer it has. */
    async function kept(asked: string[], said: string[], finalizers = ["tenant.example/mine"]) {
      const world = await openWorld({
        pools: [DB_POOL],
        wrap: (store) =>
          altered(store, {
            get: async (kind, key) => {
              asked.push(key);
              const stored = await store.get(kind, key);
              return stored && kind === "claim" ? { ...stored, finalizers } : stored;
            },
          }),
      });
      await put(world, { ...DETACHED, releasing: true });
      const log = { ...world.context.log, warn: (words: string) => void said.push(words) };
      return {
        world,
        context: { ...world.context, log },
        collector: world.collector({ ...world.context, log }),
      };
    }

    it("is looked at by the garbage collector until all of it cools, and not again", async () => {
      const [asked, said]: [string[], string[]] = [[], []];
      const { world, collector } = await kept(asked, said);
      await using _ = world;
      for (let n = 0; n < 3; n++) {
        await collector.pass();
        await world.settle();
      }
      assert.deepEqual(asked, ["shop/mysql-0", "10.20.0.70"]);
      assert.deepEqual(said, ["claim released; others keep its record"]);
      const reservation = await world.realStore.get("reservation", "10.20.0.70");
      assert.equal(reservation?.record.releasedAt, world.clock.now());
    });

    it("is refused at once to whoever wants its name, with that finalizer", async () => {
      const { world } = await kept([], []);
      await using _ = world;
      const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
      assert.equal(
        refusalOf(await reserve(world.context, allocation, "pod")),
        KEPT.replace("somebody else's", "tenant.example/mine"),
      );
    });

    it("is released once however often somebody wants its name, and five finalizers are named", async () => {
      const [asked, said]: [string[], string[]] = [[], []];
      const finalizers = Array.from({ length: 9 }, (_, n) => `tenant.example/${n}`);
      const { world, context } = await kept(asked, said, finalizers);
      await using _ = world;
      const allocation = ordinalAllocation(world, "mysql-0", entries("10.20.0.70"));
      const named = finalizers.slice(0, 5).join(", ");
      for (let n = 0; n < 3; n++) {
        const refusal = refusalOf(await reserve(context, allocation, "pod"));
        assert.equal(refusal, KEPT.replace("somebody else's", `${named} and 4 more`));
        await world.settle();
      }
      assert.deepEqual(said, ["claim released; others keep its record"]);
      assert.equal(asked.filter((key) => key === "10.20.0.70").length, 1);
      const reservation = await world.realStore.get("reservation", "10.20.0.70");
      assert.equal(reservation?.record.releasedAt, world.clock.now());
    });
  });
});
