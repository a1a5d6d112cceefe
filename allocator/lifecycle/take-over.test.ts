// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean, assertSound, auditWorld } from "../../test/support/assert-audit.ts";
import { FailingStore } from "../../test/support/failing-store.ts";
import {
  addrs,
  claimRecord,
  DB_POOL,
  granted,
  namespaceFacts,
  refusalOf,
} from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { dryRun } from "../demand/allocation-dry-run.ts";
import { requestFromSpec } from "../demand/build-request.ts";
import type { Claim } from "../model/claim.ts";
import type { Store, Stored } from "../store/store.ts";
import { type AllocationRequest, takingOver } from "./allocation-request.ts";
import { release } from "./release.ts";
import { reserve } from "./reserve.ts";

const BOTH = ["10.20.0.70", "fd00:20::7"] as const;

/** Claim shop/old with both addresses, and shop/new, made by hand, which waits to take over from it. */
async function pair(world: World, namespace = "shop"): Promise<Stored<"claim">> {
  const old = podAllocation(world, "old", entries(BOTH.join(",")), namespace);
  const { claim } = granted(await reserve(world.context, old, "pod"));
  await world.realStore.create("claim", successor());
  await world.settle();
  return claim;
}

function successor(): Claim {
  const identity = { kind: "Pod", apiVersion: "v1", name: "new" };
  const request = { addresses: addrs(...BOTH) };
  const pending = { addresses: [], nonce: "", handMade: true, status: {} } as const;
  return claimRecord({ name: "new", identity, takesOver: "old", request, ...pending });
}

function wanted(world: World, wasUnused: boolean): AllocationRequest {
  const given = { token: world.random.token(), now: world.clock.now() };
  const request = requestFromSpec(successor(), namespaceFacts("shop"), given);
  return { ...takingOver(request, { name: "old", wasUnused }), userRequested: true };
}

async function holders(world: World): Promise<string[]> {
  return (await world.all("reservation")).map(({ record }) => record.claim.name);
}

/** Both addresses are reserved after each write. */
function neverFree(store: Store, writes: string[]): Store {
  const seen = async <T>(what: string, written: Promise<T>): Promise<T> => {
    const result = await written;
    writes.push(what);
    for (const address of BOTH)
      assert.ok(await store.get("reservation", address), `${address} after ${what}`);
    return result;
  };
  return overlay(store, {
    create: (kind, record) => seen(`create ${kind}`, store.create(kind, record)),
    replace: (kind, was, next) => seen(`replace ${kind}`, store.replace(kind, was, next)),
    remove: (kind, was) => seen(`remove ${kind}`, store.remove(kind, was)),
  });
}

describe("a claim that takes over from another one", () => {
  it("has what that one left without the addresses being free in between", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const old = await pair(world);
    const writes: string[] = [];
    const store = neverFree(world.realStore, writes);
    assert.equal((await store.remove("claim", old)).kind, "removed");
    const { claim } = granted(await reserve({ ...world.context, store }, wanted(world, true), "pod"));
    assert.deepEqual(claim.record.addresses, addrs(...BOTH));
    assert.deepEqual(await holders(world), ["new", "new"]);
    assert.ok(writes.includes("replace reservation"));
    await world.settle();
    await assertClean(world);
  });

  it("waits while that one is there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pair(world);
    const got = await reserve(world.context, wanted(world, true), "pod");
    assert.match(refusalOf(got), /^ADDRESS_TAKEN: address 10\.20\.0\.70 in pool "db" is held by shop\/old/);
    const findings = (await auditWorld(world)).map(({ kind }) => kind);
    assert.deepEqual(findings, ["unreserved-request"]);
    assert.deepEqual(await holders(world), ["old", "old"]);
  });

  it("is told beforehand what it would get", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pair(world);
    const would = await dryRun(world.context, wanted(world, false));
    assert.deepEqual(
      granted(would).addresses.map(({ address }) => address),
      addrs(...BOTH),
    );
  });

  it("has at once what that one gave back, while it cools for everybody else", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await release(world.context, await pair(world));
    const other = podAllocation(world, "other", entries(BOTH[0]));
    assert.match(refusalOf(await reserve(world.context, other, "pod")), /^ADDRESS_TAKEN/);
    granted(await reserve(world.context, wanted(world, false), "pod"));
    assert.deepEqual(await holders(world), ["new", "new"]);
  });

  it("does not have what lies there while a sandbox may still use it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.remove("claim", await pair(world));
    assert.match(refusalOf(await reserve(world.context, wanted(world, false), "pod")), /^ADDRESS_TAKEN/);
    assert.deepEqual(await holders(world), ["old", "old"]);
  });

  it("does not take over from a claim of that name in another namespace", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await release(world.context, await pair(world, "bank"));
    assert.match(refusalOf(await reserve(world.context, wanted(world, true), "pod")), /^ADDRESS_TAKEN/);
  });

  it("is waited for by the garbage collector, which sets free what nobody waits for", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.remove("claim", await pair(world));
    await world.settle();
    const collector = world.collector();
    await collector.pass();
    world.clock.advance(120_000);
    await collector.pass();
    const cooling = (await world.all("reservation")).map(({ record }) => record.releasedAt);
    assert.deepEqual(cooling, [world.clock.now(), world.clock.now()]);
    await world.settle();
    granted(await reserve(world.context, wanted(world, false), "pod"));
    assert.deepEqual(await holders(world), ["new", "new"]);
  });

  for (const failure of ["before", "after"] as const) {
    it(`loses nothing and doubles nothing when it breaks off, ${failure} each write`, async () => {
      for (let at = 1, died = true; died; at++) {
        await using world = await openWorld({ pools: [DB_POOL], seed: at });
        await world.realStore.remove("claim", await pair(world));
        await world.settle();
        const dying = new FailingStore(world.realStore, at, failure);
        await reserve(world.another(at, dying), wanted(world, true), "pod").catch(() => undefined);
        died = dying.died;
        assert.equal((await world.all("reservation")).length, 2);
        await assertSound(world);
        await world.settle();
        world.clock.advance(2_000);
        granted(await reserve(world.context, wanted(world, true), "pod"));
        assert.deepEqual(await holders(world), ["new", "new"]);
        await assertSound(world);
      }
    });
  }
});
