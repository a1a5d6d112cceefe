// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, applicantOf, claimRecord, DB_POOL, granted, refusalOf } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { Request } from "../model/address-request.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import type { Store } from "../store/store.ts";
import { dryRun } from "./allocation-dry-run.ts";
import type { AllocationInput } from "./build-request.ts";
import { predictFromCache } from "./cache-prediction.ts";
import { resolvePod } from "./pod-allocation.ts";

const SELF = { kind: "Pod", apiVersion: "v1", name: "licence" };

/** A claim as a person writes it, which nobody has reserved for yet. */
function handMade(request: Claim["request"]): Claim {
  return claimRecord({
    ...{ name: "licence", identity: SELF, request, addresses: [], nonce: "", handMade: true },
    retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: null },
  });
}

function inputOf(world: World, request: Request): AllocationInput {
  const podIdentity = { kind: "named", claim: "licence", identity: SELF } as const;
  return applicantOf({ podIdentity, request, token: world.random.token(), now: world.clock.now() });
}

async function requestFor(world: World, request: Request): Promise<AllocationRequest> {
  const resolved = granted(
    (await resolvePod(world.context, inputOf(world, request))) ?? assert.fail("no request"),
  );
  assert.ok(resolved.kind === "own");
  return resolved.requests[0];
}

async function got(world: World, request: Request): Promise<readonly string[]> {
  return granted(await reserve(world.context, await requestFor(world, request), "pod")).claim.record
    .addresses;
}

/** What is read of the store for a new claim. */
async function reads(request: Request): Promise<readonly string[]> {
  const asked: string[] = [];
  const wrap = (store: Store): Store => {
    const get: Store["get"] = async (kind, key) => {
      asked.push(kind);
      return await store.get(kind, key);
    };
    return Object.create(store, {
      get: { value: get },
      create: { value: store.create.bind(store) },
      list: { value: store.list.bind(store) },
    });
  };
  await using world = await openWorld({ pools: [DB_POOL], wrap });
  assert.equal((await got(world, request)).length, 2);
  return asked;
}

describe("a pod that is only sticky", () => {
  for (const reserved of [false, true]) {
    const state = reserved ? "is reserved" : "was just made";
    it(`gets what the author of its claim wrote and nothing beside it, when the claim ${state}`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      await world.realStore.create("claim", handMade({ addresses: addrs("10.20.0.70") }));
      await world.settle();
      if (reserved) {
        assert.deepEqual(await got(world, {}), ["10.20.0.70"]);
        await world.settle();
      }
      const resolved = await requestFor(world, { sticky: true });
      const would = granted(await dryRun(world.context, resolved));
      assert.deepEqual(would.addresses, [{ address: "10.20.0.70", pool: "db", held: reserved }]);
      assert.equal(predictFromCache(world.context, resolved).kind, reserved ? "satisfied" : "unknown");
      const before = world.context.view.claim(claimKey(resolved.key));
      const { claim } = granted(await reserve(world.context, resolved, "pod"));
      assert.deepEqual(claim.record.addresses, ["10.20.0.70"]);
      assert.equal(claim.record.retention.whenDeleted, "Retain");
      assert.equal(claim.revision === before?.revision, reserved);
      await assertClean(world);
    });
  }

  it("gets that even if the view has not heard of the claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.settle();
    const resolved = await requestFor(world, { sticky: true });
    await world.realStore.create("claim", handMade({ families: ["IPv4"] }));
    const { claim } = granted(await reserve(world.context, resolved, "pod"));
    assert.equal(claim.record.addresses.length, 1);
    assert.match(claim.record.addresses[0] ?? "", /^10\.20\./);
  });

  it("costs one look at its claim, which may say what it wants, and one that says so itself none", async () => {
    const claims = (asked: readonly string[]) => asked.filter((kind) => kind === "claim");
    assert.deepEqual(claims(await reads({ sticky: true })), ["claim"]);
    assert.deepEqual(claims(await reads({ pools: ["db"] })), []);
  });
});

describe("a pod that says what it wants", () => {
  const has = { addresses: addrs("10.20.0.70") };
  const served: readonly (readonly [Request, Claim["request"]])[] = [
    [{ entries: [addrs("10.20.0.70")] }, has],
    [{ pools: ["db"] }, has],
    [{ families: ["IPv4"], sticky: true }, has],
    [{ pools: ["db"] }, { families: ["IPv4"] }],
    [
      { families: ["IPv4"], sticky: true },
      { pools: ["db"], families: ["IPv4"] },
    ],
  ];
  const refused: readonly (readonly [Request, Claim["request"], string, string])[] = [
    [{ entries: [addrs("10.20.0.71")] }, has, "10.20.0.70", "10.20.0.71"],
    [{ entries: [addrs("10.20.0.70", "fd00:20::7")] }, has, "10.20.0.70", "10.20.0.70, fd00:20::7"],
    [{ pools: ["web"] }, has, "10.20.0.70", "an address of pool web"],
    [{ families: ["IPv4", "IPv6"], sticky: true }, has, "10.20.0.70", "IPv4 and IPv6 addresses of pool any"],
    [
      { families: ["IPv6"], sticky: true },
      { families: ["IPv4"] },
      "IPv4 addresses of pool any",
      "IPv6 addresses of pool any",
    ],
    [{ pools: ["web"] }, { pools: ["db"] }, "an address of pool db", "an address of pool web"],
  ];
  for (const reserved of [false, true]) {
    const state = reserved ? "is reserved" : "was just made";
    async function opened(said: Claim["request"]): Promise<World> {
      const world = await openWorld({ pools: [DB_POOL] });
      await world.realStore.create("claim", handMade(said));
      await world.settle();
      if (reserved) await got(world, {});
      await world.settle();
      return world;
    }

    for (const [request, said] of served) {
      it(`as ${JSON.stringify(request)} gets what a person made for it as ${JSON.stringify(said)}, when that ${state}`, async () => {
        await using world = await opened(said);
        const before = (await world.realStore.get("claim", "shop/licence"))?.record.addresses ?? [];
        const addresses = await got(world, request);
        assert.equal(addresses.length, 1);
        if (reserved) assert.deepEqual(addresses, before);
        await assertClean(world);
      });
    }

    for (const [request, said, its, asked] of refused) {
      if (reserved && said.addresses === undefined) continue;
      it(`as ${JSON.stringify(request)} is refused where a person made ${JSON.stringify(said)}, which ${state}`, async () => {
        await using world = await opened(said);
        const before = world.dump();
        const words = `CLAIM_BUSY: claim shop/licence was made by hand and ${reserved ? "holds" : "is for"} ${its}, and this asks for ${asked}; ask for what the claim has, or delete the claim or change its spec.request`;
        const resolved = await requestFor(world, request);
        for (const seen of ["nothing", "workload", "pod"] as const)
          assert.equal(refusalOf(await reserve(world.context, resolved, seen)), words);
        assert.equal(refusalOf(await dryRun(world.context, resolved)), words);
        const predicted = predictFromCache(world.context, resolved);
        assert.equal(predicted.kind === "refused" ? refusalOf(predicted) : "", words);
        assert.equal(world.dump(), before);
      });
    }
  }

  it("gets it as soon as the claim that a person made is deleted, whether or not the view has heard of that", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await world.realStore.create("claim", handMade(has));
    await world.settle();
    const resolved = await requestFor(world, { entries: [addrs("10.20.0.71")] });
    const there = (await world.realStore.get("claim", "shop/licence")) ?? assert.fail("no claim");
    await world.realStore.remove("claim", there);
    granted(await dryRun(world.context, resolved));
    assert.deepEqual(granted(await reserve(world.context, resolved, "nothing")).addresses, ["10.20.0.71"]);
  });
});

describe("a claim that was made for a pod", () => {
  it("has what its pod asks for, which is all families when that is only sticky", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    assert.equal((await requestFor(world, { sticky: true })).followsClaim, "handMade");
    assert.equal((await got(world, { sticky: true })).length, 2);
    await world.settle();
    const resolved = await requestFor(world, { sticky: true });
    assert.equal(predictFromCache(world.context, resolved).kind, "satisfied");
  });
});
