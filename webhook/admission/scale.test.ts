// SPDX-License-Identifier: Apache-2.0
// Reviews of the subresource `scale`, as a cluster sends them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { type Json, review, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const LIST = { "berth.dev/ips": "10.20.0.70-10.20.0.73" };

function scale(name: string, replicas: number): Json {
  // a Scale leaves nought out
  const spec = replicas === 0 ? {} : { replicas };
  return { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name, namespace: "shop" }, spec };
}

/** What is said of a workload that was applied, and is scaled. */
async function scaled(
  world: World,
  resource: string,
  { name, from, to }: { readonly name: string; readonly from: number; readonly to: number },
  group = "apps",
): Promise<readonly string[]> {
  const { embedded: _, ...admission } = world.admission;
  const request = review(scale(name, to), "UPDATE", {
    oldObject: scale(name, from),
    resource: { group, version: "v1", resource },
    subResource: "scale",
  });
  const before = world.dump();
  const response = await createHandlers(admission)["/validate/workloads"](
    request,
    new AbortController().signal,
  );
  assert.equal(response.allowed, true);
  assert.equal(world.dump(), before, "and nothing is written");
  return response.warnings ?? [];
}

describe("a review of the subresource scale", () => {
  it("says what is kept of the ordinals that go, and until when", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(
      world,
      "/validate/workloads",
      workload("StatefulSet", "mysql", { replicas: 3, annotations: LIST }),
    );
    const down = (to: number) => scaled(world, "statefulsets", { name: "mysql", from: 3, to });
    const kept = (n: number) =>
      `mysql-${n} keeps 10.20.0.7${n} for 720h after its pod is gone; to give it back then: berthctl release shop/mysql-${n}`;
    assert.deepEqual(await down(2), [kept(2)]);
    assert.deepEqual(await down(0), [kept(0), kept(1), kept(2)]);
    assert.deepEqual(await down(4), []);
  });

  it("says of a list that is shorter which pods will be refused", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const lists = { StatefulSet: LIST, Deployment: { "berth.dev/ips": "10.20.0.80-10.20.0.83" } };
    for (const [kind, annotations] of Object.entries(lists))
      await send(world, "/validate/workloads", workload(kind, "web", { replicas: 1, annotations }));
    const up = (resource: string) => scaled(world, resource, { name: "web", from: 1, to: 6 });
    const until = "until then the pods without an entry are refused";
    assert.deepEqual(await up("statefulsets"), [
      `the list has 4 entries, for ordinals 0 to 3, and none for ordinal 4; add an entry or lower replicas; ${until}`,
    ]);
    assert.deepEqual(await up("deployments"), [
      `the list has 4 entries for 6 replicas; add entries or lower replicas; ${until}`,
    ]);
    assert.deepEqual(await scaled(world, "deployments", { name: "web", from: 4, to: 1 }), []);
  });

  it("says of a list with no entry to spare what a rolling update will want", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const needs = (surge: number) =>
      `a rolling update may want ${4 + surge} pods at once (4 replicas and maxSurge ${surge}), and the list has 4 entries`;
    const waits = "its surge pods wait until old ones are gone";
    const never =
      "with maxUnavailable 0 it would never end: add entries, or set maxSurge 0 and maxUnavailable 1";
    const rolling = (rollingUpdate: Json) => ({ strategy: { type: "RollingUpdate", rollingUpdate } });
    for (const [kind, spec, words] of [
      ["Deployment", {}, [`${needs(1)}; ${waits}`]],
      ["Deployment", rolling({ maxSurge: 2, maxUnavailable: 0 }), [`${needs(2)}; ${never}`]],
      ["Deployment", rolling({ maxSurge: 0, maxUnavailable: 1 }), []],
      ["Deployment", { strategy: { type: "Recreate" } }, []],
      ["CloneSet", {}, []],
      ["CloneSet", { updateStrategy: { maxSurge: 1 } }, [`${needs(1)}; ${never}`]],
    ] as const) {
      const made = workload(kind, "web", { replicas: 3, annotations: LIST, spec });
      const group = kind === "CloneSet" ? "apps.kruise.io" : "apps";
      const object = kind === "CloneSet" ? { ...made, apiVersion: "apps.kruise.io/v1alpha1" } : made;
      await send(world, "/validate/workloads", object);
      const resource = `${kind.toLowerCase()}s`;
      const to = async (replicas: number) =>
        await scaled(world, resource, { name: "web", from: 3, to: replicas }, group);
      assert.deepEqual(await to(4), words, JSON.stringify(spec));
      assert.match((await to(5)).join(), /^the list has 4 entries for 5 replicas; /);
    }
  });

  it("counts the ordinals that OpenKruise leaves out", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const set = workload("StatefulSet", "mysql", {
      ...{ replicas: 2, annotations: LIST, spec: { reserveOrdinals: [1] } },
    });
    await send(world, "/validate/workloads", { ...set, apiVersion: "apps.kruise.io/v1beta1" });
    const to = (replicas: number) =>
      scaled(world, "statefulsets", { name: "mysql", from: 2, to: replicas }, "apps.kruise.io");
    assert.deepEqual(await to(3), []); // 0, 2 and 3
    assert.match((await to(4)).join(), /and none for ordinal 4;/);
    assert.match((await to(1)).join(), /^mysql-2 keeps 10\.20\.0\.72 [^,]*$/);
  });

  it("says nothing of what it does not know, or that asks for nothing", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const one = { name: "web", from: 3, to: 1 };
    assert.deepEqual(await scaled(world, "statefulsets", one), []);
    await send(world, "/validate/workloads", workload("StatefulSet", "web", { replicas: 3 }));
    for (const [resource, group] of [
      ["statefulsets", "apps"],
      ["statefulsets", "other.example"],
      ["replicasets", "apps"],
    ] as const) {
      assert.deepEqual(await scaled(world, resource, one, group), []);
      assert.deepEqual(await scaled(world, resource, { ...one, to: 9 }, group), []);
    }
  });
});
