// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { bindingTo, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, ownedBy, statefulPod, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const BEFORE = "10.20.0.70;10.20.0.71;10.20.0.72;10.20.0.73";
const PARALLEL = { podManagementPolicy: "Parallel" };

function set(ips: string, spec: Json = {}, apiVersion = "apps/v1"): Json {
  const annotations = { "berth.dev/ips": ips };
  return { ...workload("StatefulSet", "mysql", { replicas: 4, annotations, spec }), apiVersion };
}

/** The set, whose pods run but for these. */
async function running(missing: readonly number[], apiVersion?: string): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL] });
  assert.equal(deniedAs(await send(world, "/validate/workloads", set(BEFORE, {}, apiVersion))), "");
  const owner = { ...ownedBy("StatefulSet", "mysql"), ...(apiVersion && { apiVersion }) };
  for (const ordinal of [0, 1, 2, 3].filter((one) => !missing.includes(one))) {
    const name = `mysql-${ordinal}`;
    const seen = await world.realStore.get("claim", `shop/${name}`);
    assert.ok(seen);
    await world.realStore.replace("claim", seen, { ...seen.record, binding: bindingTo(name, "node-a") });
    await world.objects.keep(
      granted(readObject(statefulPod("mysql", ordinal, { uid: `uid-${name}`, owner }))),
    );
  }
  await world.settle();
  return world;
}

async function edited(world: World, object: Json): Promise<string> {
  const words = deniedAs(await send(world, "/validate/workloads", object, { operation: "UPDATE" }));
  return words.slice(0, words.indexOf(","));
}

const waits = (name: string, address: string) => `ADDRESS_TAKEN: ${name} waits for ${address}`;

describe("an edited list of a StatefulSet with podManagementPolicy: Parallel", () => {
  it("is refused where a missing pod waits for one of a later batch, which is not tried after it", async () => {
    const [first, second] = [
      "10.20.0.71;10.20.0.80;10.20.0.72;10.20.0.73",
      "10.20.0.70;10.20.0.72;10.20.0.80;10.20.0.73",
    ];
    {
      await using world = await running([0, 1]);
      assert.equal(await edited(world, set(first, PARALLEL)), waits("mysql-0", "10.20.0.71"));
      assert.equal(await edited(world, set(first)), waits("mysql-0", "10.20.0.71"));
    }
    {
      await using world = await running([1, 2]);
      assert.equal(await edited(world, set(second, PARALLEL)), "", "tried at once");
      assert.equal(await edited(world, set(second)), waits("mysql-1", "10.20.0.72"));
    }
    {
      const kruise = "apps.kruise.io/v1beta1";
      await using world = await running([1, 2], kruise);
      assert.equal(await edited(world, set(second, PARALLEL, kruise)), waits("mysql-1", "10.20.0.72"));
    }
  });

  it("is refused where pods are replaced together only if those before them are ready at the same moment", async () => {
    await using world = await running([]);
    const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } };
    const [first, second] = [
      "10.20.0.70;10.20.0.71;10.20.0.80;10.20.0.72",
      "10.20.0.80;10.20.0.70;10.20.0.72;10.20.0.73",
    ];
    for (const spec of [{ updateStrategy }, { updateStrategy, ...PARALLEL }])
      assert.equal(await edited(world, set(first, spec)), "");
    assert.equal(await edited(world, set(second, { updateStrategy })), "");
    assert.equal(
      await edited(world, set(second, { updateStrategy, ...PARALLEL })),
      waits("mysql-1", "10.20.0.70"),
    );
  });
});
