// SPDX-License-Identifier: Apache-2.0
// A pod without an owner that is called as an ordinal of a StatefulSet which wants its claim.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bind } from "../../allocator/lifecycle/bind.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { assertClean } from "../../test/support/books.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, pod, workload } from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const IPS = "berth.dev/ips";
const LIST = { [IPS]: "10.20.0.71;10.20.0.72", "berth.dev/when-deleted": "Retain" };
const BARE = pod("mysql-0", { annotations: { [IPS]: "10.20.0.71" } });

function set(replicas = 2): Json {
  return workload("StatefulSet", "mysql", { replicas, annotations: LIST, spec: {} });
}

async function claimOf(world: World): Promise<Stored<"claim">> {
  return (await world.authority.get("claim", "shop/mysql-0")) ?? assert.fail("no claim");
}

/** Owner, retention and request: what is the workload's. */
async function ownOf(world: World): Promise<unknown> {
  const { identity, retention, request } = (await claimOf(world)).record;
  return { identity, retention, request };
}

/** The pod runs, and its sandbox has ended. */
async function ran(world: World, uid: string): Promise<void> {
  const target = { name: "mysql-0", uid, node: "here", token: "" };
  await bind(world.context, "shop/mysql-0", target, async () => ({ fenced: false, promiseOver: false }));
  const sandbox = { node: "here", containerID: "box", interface: "eth0", podUID: uid, since: 0 };
  await world.store.report(await claimOf(world), {
    phase: "Detached",
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
    await world.reaper().judgeClaim(await claimOf(world));
    await world.settle();
    assert.deepEqual(await ownOf(world), before);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71", "shop/mysql-1": "10.20.0.72" });
    await assertClean(world);
  });

  it("is refused another address than the ordinal's, dry or not", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set());
    const other = pod("mysql-0", { annotations: { [IPS]: "10.20.0.80" } });
    const words =
      "CLAIM_BUSY: claim shop/mysql-0 holds 10.20.0.71 for StatefulSet mysql, ordinal 0, which wants it, and this pod, which is not its own, asks for 10.20.0.80; give this pod another name";
    assert.equal(deniedAs(await send(world, "/mutate/pods", other, { dryRun: true })), words);
    assert.equal(await admitPod(world, other), words);
    assert.deepEqual(await world.holdings(), { "shop/mysql-0": "10.20.0.71", "shop/mysql-1": "10.20.0.72" });
    await assertClean(world);
  });

  it("has the claim for itself when the StatefulSet is gone", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/workloads", set());
    await send(world, "/validate/workloads", set(), { operation: "DELETE" });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    assert.equal((await claimOf(world)).record.identity.kind, "Pod");
  });

  it("that came first leaves its claim to the StatefulSet that comes", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, BARE, "mysql-0", "uid-bare");
    await ran(world, "uid-bare");
    const answer = await send(world, "/validate/workloads", set());
    assert.deepEqual([answer.allowed, answer.warnings ?? []], [true, []]);
    const { identity, addresses } = (await claimOf(world)).record;
    assert.deepEqual([identity.kind, identity.ordinal, addresses.join()], ["StatefulSet", 0, "10.20.0.71"]);
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
