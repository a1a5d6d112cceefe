// SPDX-License-Identifier: Apache-2.0
// A pod without an owner that is called as an ordinal of a StatefulSet which wants its claim.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL, granted } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, ownedBy, pod, review, workload } from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { ObjectStore } from "./admission-context.ts";
import { validateWorkloads } from "./validate-workload.ts";

const IPS = "berth.dev/ips";
const LIST = { [IPS]: "10.20.0.71;10.20.0.72", "berth.dev/when-deleted": "Retain" };
const BARE = pod("mysql-0", { annotations: { [IPS]: "10.20.0.71" } });

function set(replicas = 2, annotations: Readonly<Record<string, string>> = LIST): Json {
  return workload("StatefulSet", "mysql", { uid: "uid-set", replicas, annotations, spec: {} });
}

async function claimOf(world: World, ordinal = 0): Promise<Stored<"claim">> {
  return (await world.realStore.get("claim", `shop/mysql-${ordinal}`)) ?? assert.fail("no claim");
}

/** Owner, retention and request: what is the workload's. */
async function ownOf(world: World, ordinal = 0): Promise<unknown> {
  const { identity, retention, request } = (await claimOf(world, ordinal)).record;
  return { identity, retention, request };
}

/** The pod runs, and its sandbox has ended. */
async function ran(world: World, uid: string, ordinal = 0): Promise<void> {
  const target = { name: `mysql-${ordinal}`, uid, node: "here", token: "" };
  const evidence = async () => ({ fenced: false, holdExpired: false });
  await bind(world.context, `shop/mysql-${ordinal}`, target, evidence);
  const sandbox = { node: "here", containerID: "box", interface: "eth0", podUID: uid, since: 0 };
  await world.store.report(await claimOf(world, ordinal), {
    attachment: { ...sandbox, detached: true },
  });
  await world.settle();
}

describe("a pod by itself that is called as an ordinal", () => {
  it("uses the claim that the StatefulSet wants, which stays the StatefulSet's when it is gone", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set());
    const before = await ownOf(world);
    const made = await createPod(world, BARE, "mysql-0", "uid-bare");
    assert.deepEqual(await ownOf(world), before);
    await ran(world, "uid-bare");
    await send(world, "/validate/pods", made, { operation: "DELETE" });
    await world.collector().judgeClaim(await claimOf(world));
    await world.settle();
    assert.deepEqual(await ownOf(world), before);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71", "shop/mysql-1": "10.20.0.72" });
    await assertClean(world);
  });

  it("is refused the ordinal's address on another interface", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set(2, { ...LIST, [IPS]: "10.20.0.71@eth0;10.20.0.72@eth0" }));
    const other = pod("mysql-0", { annotations: { [IPS]: "10.20.0.71@net1" } });
    assert.match(
      await admitPod(world, other),
      /^CLAIM_BUSY: claim shop\/mysql-0 holds 10\.20\.0\.71@eth0 for StatefulSet mysql, ordinal 0, whose it stays, and this pod, which is not its own, asks for 10\.20\.0\.71@net1;/,
    );
  });

  it("is refused another address than the ordinal's, dry or not", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set());
    const other = pod("mysql-0", { annotations: { [IPS]: "10.20.0.80" } });
    const words =
      "CLAIM_BUSY: claim shop/mysql-0 holds 10.20.0.71 for StatefulSet mysql, ordinal 0, whose it stays, and this pod, which is not its own, asks for 10.20.0.80; give this pod another name, or give the claim back if StatefulSet mysql is not to come back: berthctl release shop/mysql-0";
    assert.equal(deniedAs(await send(world, "/mutate/pods", other, { dryRun: true })), words);
    assert.equal(await admitPod(world, other), words);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71", "shop/mysql-1": "10.20.0.72" });
    await assertClean(world);
  });

  it("has the claim for itself when the StatefulSet is gone and nothing retains its addresses", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const released = set(2, { ...LIST, "berth.dev/when-deleted": "Release" });
    await send(world, "/validate/workloads", released);
    await send(world, "/validate/workloads", released, { operation: "DELETE" });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    assert.equal((await claimOf(world)).record.identity.kind, "Pod");
  });

  for (const [what, next] of [
    ["beyond the replicas", set(1)],
    ["of a StatefulSet that is gone", undefined],
  ] as const) {
    it(`uses an ordinal's claim ${what} that is retained, and takes neither owner nor retention`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      await send(world, "/validate/workloads", set());
      await ran(world, "uid-own", 1);
      if (next === undefined) await send(world, "/validate/workloads", set(), { operation: "DELETE" });
      else await send(world, "/validate/workloads", next, { operation: "UPDATE", oldObject: set() });
      await world.collector().judgeClaim(await claimOf(world, 1));
      await world.settle();
      assert.ok((await claimOf(world, 1)).record.retained !== undefined, "it is retained");
      const before = await ownOf(world, 1);

      const other = pod("mysql-1", { annotations: { [IPS]: "10.20.0.80" } });
      assert.match(
        await admitPod(world, other),
        /^CLAIM_BUSY: .* whose it stays, .*berthctl release shop\/mysql-1$/,
      );
      assert.match(deniedAs(await send(world, "/mutate/pods", other, { dryRun: true })), /^CLAIM_BUSY: /);
      const bare = pod("mysql-1", { annotations: { [IPS]: "10.20.0.72" } });
      const made = await createPod(world, bare, "mysql-1", "uid-bare");
      assert.deepEqual(await ownOf(world, 1), before);
      await ran(world, "uid-bare", 1);
      await send(world, "/validate/pods", made, { operation: "DELETE" });
      await world.collector().judgeClaim(await claimOf(world, 1));
      await world.settle();
      const { addresses, retained } = (await claimOf(world, 1)).record;
      assert.deepEqual(await ownOf(world, 1), before);
      assert.equal(addresses.join(), "10.20.0.72");
      assert.ok(retained !== undefined, "its retention begins anew");
      await assertClean(world);
    });
  }

  it("that came first leaves its claim to the StatefulSet that comes", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    await ran(world, "uid-bare");
    const answer = await send(world, "/validate/workloads", set());
    assert.deepEqual([answer.allowed, answer.warnings ?? []], [true, []]);
    const { identity, addresses } = (await claimOf(world)).record;
    assert.deepEqual([identity.kind, identity.ordinal, addresses.join()], ["StatefulSet", 0, "10.20.0.71"]);
  });

  it("leaves its claim to the StatefulSet that is kept, and not to one that was applied at the same time", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    await ran(world, "uid-bare");
    const before = await ownOf(world);
    const other = set(2, { [IPS]: "10.20.0.71;10.20.0.72", "berth.dev/ttl": "1h" });
    const keeps = world.admission.embedded ?? assert.fail("nothing is kept");
    const embedded: ObjectStore = {
      forget: (...of) => keeps.forget(...of),
      expect: (object) => world.objects.expect(object),
      keep: async (object) => {
        await keeps.keep(object);
        await keeps.keep(granted(readObject(other)));
      },
    };
    const handle = validateWorkloads({ ...world.admission, embedded });
    const answer = await handle(review(set()), new AbortController().signal);
    await world.settle();
    assert.deepEqual([answer.allowed, answer.warnings ?? []], [true, []]);
    assert.deepEqual(await ownOf(world), before);
    await send(world, "/validate/workloads", other);
    assert.equal((await claimOf(world)).record.retention.ttlMs, 3_600_000);
  });

  it("writes nothing of what it found before the StatefulSet was kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const keeps = world.admission.embedded ?? assert.fail("nothing is kept");
    let found: Stored<"claim"> | undefined;
    const embedded: ObjectStore = {
      forget: (...of) => keeps.forget(...of),
      keep: async (object) => {
        found = await claimOf(world);
        await keeps.keep(object);
      },
    };
    const answer = await validateWorkloads({ ...world.admission, embedded })(
      review(set()),
      new AbortController().signal,
    );
    assert.equal(answer.allowed, true);
    const before = found ?? assert.fail("it was not kept");
    const identity = { kind: "Pod", apiVersion: "v1", name: "mysql-0" };
    const late = await world.store.replace("claim", before, { ...before.record, identity });
    assert.equal(late.kind, "conflict");
    assert.equal((await claimOf(world)).record.identity.kind, "StatefulSet");
    await assertClean(world);
  });

  it("keeps its claim when the review of a StatefulSet that comes breaks off before that is kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    const before = await ownOf(world);
    const keeps = world.admission.embedded ?? assert.fail("nothing is kept");
    const embedded: ObjectStore = {
      forget: (...of) => keeps.forget(...of),
      keep: async () => {
        throw new BerthError("STORE_UNAVAILABLE", "the disk is away");
      },
    };
    const handle = validateWorkloads({ ...world.admission, embedded });
    await assert.rejects(handle(review(set()), new AbortController().signal), { code: "STORE_UNAVAILABLE" });
    assert.deepEqual(await ownOf(world), before);
  });

  it("that came first with another address is named to whoever applies the StatefulSet", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, pod("mysql-0", { annotations: { [IPS]: "10.20.0.80" } }), "mysql-0", "uid-bare");
    const { warnings = [] } = await send(world, "/validate/workloads", set());
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0] ?? "",
      /^claim shop\/mysql-0 holds 10\.20\.0\.80, .*10\.20\.0\.71; it changes when/,
    );
  });
});

/** As it is restored from a backup: its owner has the name of the StatefulSet that is there, and another UID. */
describe("a pod of a former StatefulSet that is called as an ordinal", () => {
  const RELEASED = { "berth.dev/when-scaled": "Release", "berth.dev/when-deleted": "Release" };
  const former = (ips: string) =>
    pod("mysql-1", {
      annotations: { [IPS]: `10.20.0.71;${ips}`, ...RELEASED },
      owner: ownedBy("StatefulSet", "mysql", "apps/v1", "uid-former"),
    });

  for (const [what, replicas] of [
    ["wants", 2],
    ["retains", 1],
  ] as const) {
    it(`changes neither owner, retention nor request of one that the StatefulSet ${what}`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      await send(world, "/validate/workloads", set());
      await ran(world, "uid-own", 1);
      await send(world, "/validate/workloads", set(replicas), { operation: "UPDATE", oldObject: set() });
      await world.collector().judgeClaim(await claimOf(world, 1));
      await world.settle();
      const before = await ownOf(world, 1);
      assert.match(await admitPod(world, former("10.20.0.80")), /^CLAIM_BUSY: .* whose it stays, /);
      const made = await createPod(world, former("10.20.0.72"), "mysql-1", "uid-restored");
      assert.deepEqual(await ownOf(world, 1), before);
      await ran(world, "uid-restored", 1);
      await send(world, "/validate/pods", made, { operation: "DELETE" });
      await send(world, "/validate/workloads", set(1), { operation: "UPDATE", oldObject: set() });
      await world.collector().judgeClaim(await claimOf(world, 1));
      await world.settle();
      assert.deepEqual(await ownOf(world, 1), before);
      assert.equal((await claimOf(world, 1)).record.retained?.because, "scaled");
      await assertClean(world);
    });
  }

  it("passes what it has to a StatefulSet that has come under the name", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set());
    await ran(world, "uid-own", 1);
    await send(world, "/validate/workloads", set(), { operation: "DELETE" });
    const next = workload("StatefulSet", "mysql", {
      uid: "uid-next",
      replicas: 2,
      annotations: LIST,
      spec: {},
    });
    await send(world, "/validate/workloads", next);
    const own = pod("mysql-1", {
      annotations: LIST,
      owner: ownedBy("StatefulSet", "mysql", "apps/v1", "uid-next"),
    });
    await createPod(world, own, "mysql-1", "uid-of-next");
    const { identity, addresses } = (await claimOf(world, 1)).record;
    assert.deepEqual([identity.uid, addresses.join()], ["uid-next", "10.20.0.72"]);
  });
});
