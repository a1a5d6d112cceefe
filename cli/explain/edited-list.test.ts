// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { statefulPod, workload } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { ManifestDryRun } from "./dry-run.ts";

const LIST = ["10.20.0.70", "10.20.0.71", "10.20.0.72"];

/** Three pods; the claim of the second one has no sandbox, as its pod waits for its node. */
async function running(t: TestContext): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL] });
  t.after(() => world[Symbol.asyncDispose]());
  for (const [ordinal, address] of LIST.entries()) {
    const name = `mysql-${ordinal}`;
    const identity = { apiVersion: "apps/v1", kind: "StatefulSet", name: "mysql", ordinal } as const;
    const binding = ordinal === 1 ? {} : { binding: bindingTo(name, "node-a") };
    const claim = claimRecord({
      name,
      identity,
      nonce: `n${ordinal}`,
      addresses: addrs(address),
      ...binding,
    });
    await world.realStore.create("claim", claim);
    for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
    await world.objects.keep(granted(readObject(statefulPod("mysql", ordinal, { uid: `uid-${name}` }))));
  }
  return world;
}

async function foretold(
  world: World,
  list: readonly string[],
  inventory: ClusterState = world.objects,
  isThere = false,
): Promise<string[]> {
  const annotations = { "berth.dev/ips": list.join(";") };
  const object = workload("StatefulSet", "mysql", { replicas: list.length, annotations });
  const view = await loadCache(world.realStore);
  const dryRun = new ManifestDryRun({ ...world.context, view }, inventory);
  return (await dryRun.of(granted(readObject(object)), isThere)).map(({ subject, outcome }) => {
    if (isRefusal(outcome)) return `${subject}: refused, ${outcome.message}`;
    return `${subject}: ${outcome.kind}${"why" in outcome ? `, ${outcome.why}` : ""}`;
  });
}

describe("explain -f of an edited list", () => {
  it("says as admission does that a pod has its addresses later, also of a claim without a sandbox", async (t) => {
    const lines = await foretold(await running(t), ["10.20.0.71", "10.20.0.72", "10.20.0.80"]);
    assert.match(lines[0] ?? "", /^pod\/shop\/mysql-0: later, claim shop\/mysql-0 holds 10\.20\.0\.70/);
    assert.equal(
      lines[1],
      "pod/shop/mysql-1: later, mysql-1 has other addresses once the pod of the same StatefulSet that has them has been created again",
    );
    assert.match(lines[2] ?? "", /^pod\/shop\/mysql-2: later, claim shop\/mysql-2 holds 10\.20\.0\.72/);
  });

  it("refuses what admission refuses of the list as a whole", async (t) => {
    const world = await running(t);
    const [exchanged, shifted] = [
      ["10.20.0.71", "10.20.0.70", "10.20.0.72"],
      ["10.20.0.80", "10.20.0.70", "10.20.0.71"],
    ];
    const [circle, ...more] = await foretold(world, exchanged);
    assert.match(
      circle ?? "",
      /^statefulset\/shop\/mysql, each pod: refused, these wait for each other for ever: /,
    );
    assert.deepEqual(more, []);
    assert.match(
      (await foretold(world, shifted)).join(),
      /^statefulset\/shop\/mysql, each pod: refused, mysql-1 waits for 10\.20\.0\.70, which mysql-0 has, and /,
    );
    const [, , , grown] = await foretold(world, ["10.20.0.70", "10.20.0.80", "10.20.0.72", "10.20.0.71"]);
    assert.match(
      grown ?? "",
      /^pod\/shop\/mysql-3: refused, address 10\.20\.0\.71 .* is held by shop\/mysql-1/,
    );
  });

  it("refuses none that is there like that, and says that its rollout stands still", async (t) => {
    const world = await running(t);
    const shifted = ["10.20.0.80", "10.20.0.70", "10.20.0.71"];
    const lines = await foretold(world, shifted, world.objects, true);
    assert.deepEqual(
      lines.map((line) => line.split(", ")[0]),
      [
        "pod/shop/mysql-0: later",
        "pod/shop/mysql-1: later",
        "pod/shop/mysql-2: later",
        "statefulset/shop/mysql: nothing",
      ],
    );
    assert.match(
      lines[3] ?? "",
      /: nothing, it is there like that and is let through, and its rollout stands still: mysql-1 waits for 10\.20\.0\.70, which mysql-0 has, and /,
    );
  });

  it("says nothing of the whole to who may not look at pods", async (t) => {
    const world = await running(t);
    const { objects } = world;
    const inventory: ClusterState = {
      pod: async () => {
        throw new BerthError("STORE_READ_ONLY", "not allowed");
      },
      workload: async (ref) => await objects.workload(ref),
      namespace: async (name) => await objects.namespace(name),
      fenced: async (node) => await objects.fenced(node),
    };
    const lines = await foretold(world, ["10.20.0.80", "10.20.0.70", "10.20.0.71"], inventory);
    assert.equal(lines.length, 3);
  });
});
