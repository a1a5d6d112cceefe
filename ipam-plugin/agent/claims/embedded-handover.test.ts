// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bind, isDetached } from "../../../allocator/lifecycle/bind.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { Store } from "../../../allocator/store/store.ts";
import { addrs, DB_POOL, refusalOf } from "../../../test/support/fixtures.ts";
import { overlay } from "../../../test/support/overlay.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import {
  assignedClaim,
  attach,
  claimAt,
  claimsOf,
  keepPod,
  LIVE,
  optionsOf,
  pin,
} from "../testing/claims-bench.ts";
import { ask } from "../testing/node-world.ts";
import { EmbeddedClaims } from "./embedded.ts";

/** The store, where somebody acts just before the reservation of a claim is looked at. */
function altering(world: World, before: () => Promise<void>): Store {
  return overlay(world.realStore, {
    get: async (kind, key) => {
      if (kind === "reservation") await before();
      return await world.realStore.get(kind, key);
    },
  });
}

/** Somebody gives the claim another address just before it is reported. */
function changingBeforeReport(world: World, key: string, address: string): Store {
  const addresses = addrs(address);
  const { realStore } = world;
  return overlay(realStore, {
    report: async (seen, status) => {
      const now = await realStore.get("claim", key);
      if (now !== undefined && now.record.addresses[0] !== addresses[0]) {
        await realStore.replace("claim", now, { ...now.record, addresses });
      }
      return await realStore.report(seen, status);
    },
  });
}

describe("Claims, from one sandbox to the next", () => {
  it("lets the pod of a new UID on the same node have the claim, and ignores the late end of the old sandbox", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await assignedClaim(claims, ask("a"));
    const pod = { namespace: "shop", name: "a", uid: "uid-second" };
    const attachment = { network: "net", containerID: "box-second", interface: "eth0" };
    await assignedClaim(claims, ask("a", { pod, attachment }));
    await claims.attached({ claim: "shop/a", pod, attachment });
    const before = await claimAt(world, "shop/a");
    await claims.attached({ claim: "shop/a", pod, attachment });
    await claims.detached({ claim: "shop/a", pod: ask("a").pod, attachment: ask("a").attachment });
    assert.deepEqual(await claimAt(world, "shop/a"), before);
    await claims.detached({ claim: "shop/a", pod, attachment });
    assert.equal((await claimAt(world, "shop/a")).record.status.attachment?.detached, true);
  });

  it("gives a claim to a pod by itself before it binds it, whose StatefulSet was reviewed and never kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const reported = { "berth.dev/ips": "10.20.0.70", "berth.dev/claim": "mysql-0" };
    const addresses = addrs("10.20.0.70");
    const key = { namespace: "shop", name: "mysql-0" };
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
    const retention = { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null } as const;
    const ask70 = { ...key, namespaceLabels: {}, podLabels: {}, addresses };
    const request = { addresses };
    await reserve(world.context, { key, identity, request, retention, constraints: ask70 }, "nothing");
    await keepPod(world, "mysql-0", { ...reported, "berth.dev/addresses": "10.20.0.70" });
    const claims = claimsOf(world);
    const { pod, attachment } = ask("mysql-0");
    await assignedClaim(claims, ask("mysql-0"));
    assert.equal((await claimAt(world, "shop/mysql-0")).record.identity.kind, "Pod");

    await claims.detached({ claim: "shop/mysql-0", pod, attachment });
    await world.objects.forget("Pod", "shop", "mysql-0");
    await world.collector().judgeClaim(await claimAt(world, "shop/mysql-0"));
    assert.deepEqual(await world.holdings(), {});
  });

  it("lets go of what counts as in use on this node when nothing here has it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [i, name] of ["bound", "ended"].entries()) {
      await pin(world, name, `10.20.0.7${i}`);
      await assignedClaim(claimsOf(world), ask(name));
    }
    await pin(world, "elsewhere", "10.20.0.79");
    const target = { name: "elsewhere", uid: "u", node: "there", token: "" };
    await bind(world.context, "shop/elsewhere", target, async () => ({ fenced: false, holdExpired: false }));
    const suspects: Claim[] = [];
    const claims = claimsOf(world, suspects);
    const { pod, attachment } = ask("ended");
    await claims.detached({ claim: "shop/ended", pod, attachment });
    suspects.length = 0;
    await world.settle();
    assert.deepEqual(claims.inUse(), ["shop/bound"]);
    for (const name of ["bound", "bound", "ended", "elsewhere", "nobody"])
      await claims.absent(`shop/${name}`);
    assert.deepEqual(
      suspects.map(({ name }) => name),
      ["bound"],
    );
    assert.ok(isDetached((await claimAt(world, "shop/bound")).record));
    assert.ok(!isDetached((await claimAt(world, "shop/elsewhere")).record));
    await assignedClaim(claims, ask("bound"));
    assert.ok(!isDetached((await claimAt(world, "shop/bound")).record));
  });

  it("keeps what another agent on the same journal gives while the claim is read to be let go", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await assignedClaim(claimsOf(world), ask("a"));
    let isOurs = true;
    const again = { network: "net", containerID: "box-2", interface: "eth0" };
    const late = overlay(world.realStore, {
      get: async (kind, key) => {
        if (isOurs) await assignedClaim(claimsOf(world), ask("a", { attachment: again })); // etcd was away until then
        isOurs = false;
        return await world.realStore.get(kind, key);
      },
    });
    const claims = new EmbeddedClaims({ ...optionsOf(world), context: { ...world.context, store: late } });
    const requireOurs = () => assert.ok(isOurs, "taken over");
    await assert.rejects(claims.absent("shop/a", requireOurs), /taken over/);
    const { status } = (await claimAt(world, "shop/a")).record;
    assert.deepEqual([status.attachment?.containerID, status.attachment?.detached], ["box-2", false]);
  });

  it("refuses a sandbox whose pod was deleted and has a successor of its name", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await keepPod(world, "a", { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.70" });
    const claims = claimsOf(world);
    const gone =
      "CLAIM_BUSY: the pod shop/a that this sandbox is for is deleted, and another one has its name and its claim";
    const of = (uid: string, annotations?: Record<string, string>) =>
      ask("a", { pod: { namespace: "shop", name: "a", uid }, annotations });
    assert.equal(refusalOf(await attach(claims, of("uid-before"))), gone);
    assert.equal(refusalOf(await attach(claims, of("", {}))), gone);
    assert.deepEqual(
      (await assignedClaim(claims, of(""))).addresses.map(({ address }) => address),
      ["10.20.0.70"],
    );
  });

  it("writes nothing more for an ADD that was given up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const abort = new AbortController();
    const store = overlay(world.realStore, {
      report: async () => {
        abort.abort();
        return { kind: "conflict" };
      },
    });
    const claims = new EmbeddedClaims({ ...optionsOf(world), context: { ...world.context, store } });
    const found = await claims.find(ask("a"), LIVE);
    assert.ok(found.kind === "found");
    await assert.rejects(claims.attach(found, ask("a"), abort.signal), /the ADD was given up/);
    const before = await claimAt(world, "shop/a");
    assert.equal(before.record.status.attachment, undefined);
    await assert.rejects(claims.attach(found, ask("a"), abort.signal), /the ADD was given up/);
    assert.deepEqual(await claimAt(world, "shop/a"), before);
  });

  it("says nothing of a claim that went on to another node while it looked", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const silent = ask("a", { pod: { namespace: "shop", name: "a", uid: "" } });
    const here = claimsOf(world);
    await assignedClaim(here, silent);
    const { pod, attachment } = silent;
    let late = true;
    const store = altering(world, async () => {
      if (!late) return;
      late = false;
      await here.detached({ claim: "shop/a", pod, attachment });
      const there = new EmbeddedClaims({ ...optionsOf(world), node: "there" });
      await assignedClaim(
        there,
        ask("a", { attachment: { network: "net", containerID: "b", interface: "eth0" } }),
      );
    });
    const again = new EmbeddedClaims({ ...optionsOf(world), context: { ...world.context, store } });
    const next = { ...silent, attachment: { ...attachment, containerID: "next" } };
    assert.equal(
      refusalOf(await attach(again, next)),
      "CLAIM_BUSY: claim shop/a was changed or given back while it was being attached; try again",
    );
    const bound = await claimAt(world, "shop/a");
    assert.deepEqual(
      [bound.record.binding?.node, bound.record.status.attachment?.containerID],
      ["there", "b"],
    );
    await here.detached({ claim: "shop/a", pod, attachment: { ...attachment, containerID: "b" } });
    assert.deepEqual(await claimAt(world, "shop/a"), bound);
  });

  it("reads a claim once that stays as it was found, and binds what is there of one that was changed meanwhile", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [name, address] of [
      ["a", "10.20.0.70"],
      ["b", "10.20.0.71"],
    ] as const)
      await pin(world, name, address);
    let reads: string[] = [];
    const store = overlay(world.realStore, {
      get: (kind, key) => {
        reads.push(kind);
        return world.realStore.get(kind, key);
      },
    });
    const claims = new EmbeddedClaims({ ...optionsOf(world), context: { ...world.context, store } });
    const attachAfter = async (name: string, change: () => Promise<unknown>) => {
      reads = [];
      const found = await claims.find(ask(name), LIVE);
      assert.ok(found.kind === "found");
      await change();
      assert.equal((await claims.attach(found, ask(name), LIVE)).kind, "claimed");
      return reads;
    };
    assert.deepEqual(await attachAfter("a", async () => {}), ["claim", "reservation"]);
    const seen = await claimAt(world, "shop/b");
    const retention = { ...seen.record.retention, ttlMs: 1 };
    const keepShort = () => world.realStore.replace("claim", seen, { ...seen.record, retention });
    assert.deepEqual(await attachAfter("b", keepShort), ["claim", "reservation", "claim", "reservation"]);
    const { record } = await claimAt(world, "shop/b");
    assert.deepEqual([record.binding?.podUID, record.retention], ["uid-b", retention]);
  });

  it("does not give what was changed while it was being attached", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await assignedClaim(claims, ask("a"));
    const changes = changingBeforeReport(world, "shop/a", "10.20.0.71");
    const again = new EmbeddedClaims({ ...optionsOf(world), context: { ...world.context, store: changes } });
    const next = ask("a", { attachment: { network: "net", containerID: "next", interface: "eth0" } });
    assert.equal(
      refusalOf(await attach(again, next)),
      "CLAIM_BUSY: claim shop/a was changed or given back while it was being attached; try again",
    );
  });
});
