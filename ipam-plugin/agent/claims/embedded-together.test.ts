// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { claimKey } from "../../../allocator/model/claim.ts";
import type { ClaimCreated, Kind, Store } from "../../../allocator/store/store.ts";
import { addrs, poolRecord } from "../../../test/support/fixtures.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import { claimAt, LIVE, optionsOf } from "../testing/claims-bench.ts";
import { ask } from "../testing/node-world.ts";
import type { AttachRequest } from "./claim-source.ts";
import { EmbeddedClaims } from "./embedded.ts";

const POOL = poolRecord("lan", "10.1.0.0/29", { cooldown: "0s", limits: { perNamespace: 8 } });

/** Writes a claim with its reservations at once, as etcd does, and notes each call. */
class Together {
  readonly calls: string[] = [];

  readonly wrap = (store: Store): Store => ({
    ...{ list: store.list.bind(store), watch: store.watch.bind(store), close: store.close.bind(store) },
    ...{ report: this.#noted("report", store), replace: this.#noted("replace", store) },
    ...{ remove: this.#noted("remove", store), reportBlock: store.reportBlock.bind(store) },
    ...{ create: this.#noted("create", store), get: this.#noted("get", store) },
    createClaim: async (claim, reservations): Promise<ClaimCreated> => {
      this.calls.push(`createClaim ${reservations.map(({ address }) => address).join()}`);
      const there = async (kind: Kind, key: string) => (await store.get(kind, key)) !== undefined;
      const taken: ClaimCreated & { kind: "exists" } = {
        kind: "exists",
        claim: await there("claim", claimKey(claim)),
        addresses: [],
      };
      const addresses = [];
      for (const { address } of reservations)
        if (await there("reservation", address)) addresses.push(address);
      if (taken.claim || addresses.length > 0) return { ...taken, addresses };
      const made = [];
      for (const one of reservations) made.push((await store.create("reservation", one)).stored);
      return { kind: "created", claim: (await store.create("claim", claim)).stored, reservations: made };
    },
  });

  #noted<V extends "report" | "replace" | "remove" | "create" | "get">(verb: V, store: Store): Store[V] {
    const call = store[verb].bind(store) as (...args: readonly unknown[]) => unknown;
    return ((...args: readonly unknown[]) => {
      this.calls.push(verb);
      return call(...args);
    }) as Store[V];
  }
}

async function bench(): Promise<{ world: World; together: Together; claims: EmbeddedClaims }> {
  const together = new Together();
  const world = await openWorld({ pools: [POOL], wrap: together.wrap });
  const claims = new EmbeddedClaims({ ...optionsOf(world), bindsAtOnce: true, isNew: () => true });
  return { world, together, claims };
}

const request = (name: string, more: Partial<AttachRequest> = {}) => ask(name, { pools: ["lan"], ...more });

async function made(claims: EmbeddedClaims, asked: AttachRequest) {
  const found = await claims.find(asked, LIVE);
  return found.kind === "found" ? found : assert.fail(JSON.stringify(found));
}

/** As another host would, of which the view has not heard. */
async function takeUnseen(world: World, address: string): Promise<void> {
  const claim = { namespace: "shop", name: `other-${address}` };
  const [first] = addrs(address);
  assert.ok(first !== undefined);
  await world.realStore.create("reservation", { address: first, pool: "lan", claim, nonce: address });
}

const words = (got: unknown) => (isRefusal(got as never) ? (got as { message: string }).message : got);

describe("a claim that an ADD makes where the store writes it with its address", () => {
  it("costs one call, and says from the first on which sandbox has it", async () => {
    const { world, together, claims } = await bench();
    await using _ = world;
    const asked = request("a");
    const found = await made(claims, asked);
    const given = await claims.attach(found, asked, LIVE);
    assert.equal(given.kind, "claimed");
    assert.equal(together.calls.length, 1, together.calls.join());
    const { record } = await claimAt(world, "shop/a");
    assert.equal(record.binding?.node, "here");
    assert.deepEqual(
      [record.status.attachment?.containerID, record.status.attachment?.detached],
      ["box-a", false],
    );
    assert.equal(record.admittedAt, undefined);
  });

  it("is given to a repeated ADD by what the store has then", async () => {
    const { world, claims } = await bench();
    await using _ = world;
    const asked = request("a");
    const first = await claims.attach(await made(claims, asked), asked, LIVE);
    assert.deepEqual(await claims.attach(await made(claims, asked), asked, LIVE), first, "unseen");
    await world.settle();
    assert.deepEqual(await claims.attach(await made(claims, asked), asked, LIVE), first);
    assert.equal((await world.all("reservation")).length, 1);
  });

  it("is looked at again when something befell it before it was attached", async () => {
    const { world, together, claims } = await bench();
    await using _ = world;
    const asked = request("a");
    const found = await made(claims, asked);
    await claims.absent("shop/a");
    together.calls.length = 0;
    assert.equal((await claims.attach(found, asked, LIVE)).kind, "claimed");
    assert.equal((await claimAt(world, "shop/a")).record.status.attachment?.detached, false);
    assert.ok(together.calls.includes("get"), together.calls.join());
    const other = request("b");
    const next = await made(claims, other);
    await claims.detached({ claim: "shop/b", pod: other.pod, attachment: other.attachment });
    const seen = await claimAt(world, "shop/b");
    await world.realStore.remove("claim", seen);
    assert.match(String(words(await claims.attach(next, other, LIVE))), /there is no claim shop\/b/);
  });

  it("goes past addresses that others took unseen, and says so when there are no more", async () => {
    const { world, together, claims } = await bench();
    await using _ = world;
    for (const last of [1, 2, 3, 4, 5]) await takeUnseen(world, `10.1.0.${last}`);
    const asked = request("a");
    const given = await claims.attach(await made(claims, asked), asked, LIVE);
    assert.equal(given.kind === "claimed" && given.addresses[0]?.address, "10.1.0.6");
    assert.ok(
      together.calls.every((call) => call.startsWith("createClaim")),
      together.calls.join(),
    );
    assert.match(String(words(await claims.find(request("b"), LIVE))), /pool "lan"/);
    assert.equal((await world.all("claim")).length, 1);
  });

  it("refuses an address that was asked for and is another's, by name", async () => {
    const { world, claims } = await bench();
    await using _ = world;
    await takeUnseen(world, "10.1.0.3");
    const asked = request("a", { addresses: addrs("10.1.0.3") });
    assert.match(
      String(words(await claims.find(asked, LIVE))),
      /10\.1\.0\.3 .* is held by shop\/other-10\.1\.0\.3/,
    );
    const free = request("b", { addresses: addrs("10.1.0.4") });
    const given = await claims.attach(await made(claims, free), free, LIVE);
    assert.equal(given.kind === "claimed" && given.addresses[0]?.address, "10.1.0.4");
  });

  it("takes one that was asked for and has cooled, by single writes", async () => {
    const { world, claims } = await bench();
    await using _ = world;
    const [address] = addrs("10.1.0.3");
    assert.ok(address !== undefined);
    const claim = { namespace: "shop", name: "old" };
    const releasedAt = world.clock.now() - 1;
    await world.realStore.create("reservation", { address, pool: "lan", claim, nonce: "n", releasedAt });
    await world.settle();
    const asked = request("a", { addresses: [address] });
    assert.equal((await claims.attach(await made(claims, asked), asked, LIVE)).kind, "claimed");
  });
});
