// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimObject, type Json, pod, statefulPod } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { bound, POOLS, type Sending, said, send } from "../testing/cluster-reviews.ts";

async function store(world: World, key: string, change: Json = {}): Promise<Json> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  const { namespace: _, name, status: __, ...spec } = seen.record;
  return claimObject(name, { ...spec, ...change });
}

describe("a claim that people change in a cluster", () => {
  const resolved = (request: Json, more: Json = {}) => claimObject("licence", { request, ...more });

  it("is judged when it is made, with a word about pods that berth does not see", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    const hint =
      "a pod licence that asks for nothing is bound to this claim, but may start before that, with another address: ask for these with berth.dev/ips in the pod, or label namespace shop berth.dev/admission=enabled";
    assert.equal(await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] })), hint);
    assert.equal(
      await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] }), { dryRun: true }),
      `${hint} | claim shop/licence would get 10.20.0.70 from pool db`,
    );
    const inventory = {
      ...bound(world),
      namespace: async (name: string) => ({
        name,
        labels: { "berth.dev/admission": "enabled" },
        annotations: {},
      }),
    };
    assert.equal(
      await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] }), {
        admission: { inventory },
      }),
      "",
    );
    assert.match(
      await said(world, "/validate/claims", resolved({ addresses: ["192.0.2.1"] })),
      /^ADDRESS_OUTSIDE: /,
    );
    assert.equal(
      await said(world, "/validate/claims", resolved({ pools: ["db"] }, { nonce: "n", addresses: [] })),
      "REQUEST_INVALID: spec.addresses is written by Berth; leave it out",
    );
    assert.equal(world.dump(), before);
  });

  it("keeps berth's own fields, which come along with every change", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/mutate/pods", pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } }));
    const oldObject = await store(world, "shop/licence", { handMade: true });
    const now = async (change: Json) => {
      const next = { ...(oldObject["spec"] as Json), ...change };
      const spec = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null));
      return await said(world, "/validate/claims", claimObject("licence", spec), {
        operation: "UPDATE",
        oldObject,
      });
    };
    assert.equal(await now({}), "");
    assert.equal(await now({ retention: { whenDeleted: "Retain", ttl: "48h" } }), "");
    assert.equal(await now({ request: { addresses: ["10.20.0.71"] } }), "");
    assert.match(await now({ request: { addresses: ["192.0.2.1"] } }), /^ADDRESS_OUTSIDE: /);
    assert.match(
      await now({ identity: { kind: "Deployment", name: "web", slot: 0 } }),
      /identity\.slot is given/,
    );
    const words = (field: string) => `REQUEST_INVALID: spec.${field} is written by berth; leave it as it is`;
    const forged = {
      addresses: ["10.20.0.71"],
      nonce: null,
      binding: { token: "", podName: "x", podUID: "u", node: "n", since: 0 },
      retained: { since: 0, because: "deleted" },
      admittedAt: 5,
      handMade: false,
      releasing: true,
    };
    for (const [field, value] of Object.entries(forged)) {
      assert.equal(await now({ [field]: value }), words(field));
    }
  });

  it("of a slot may be changed as any that berth made: its slot comes along", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
    const claim = (more: Json) => claimObject("web-slot-0", { identity, nonce: "n1", ...more });
    const oldObject = claim({ request: { addresses: ["10.20.0.70"] } });
    const next = claim({ request: { addresses: ["10.20.0.71"] } });
    const over: Sending = { operation: "UPDATE", oldObject };
    assert.equal(await said(world, "/validate/claims", oldObject, over), "");
    assert.match(await said(world, "/validate/claims", next, over), /^claim shop\/web-slot-0 was made for /);
  });

  it("that berth made stays what it is for, and people are told that its pod overrules them", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/mutate/pods", statefulPod("mysql", 0, { annotations: { "berth.dev/pools": "db" } }));
    const oldObject = await store(world, "shop/mysql-0");
    const over: Sending = { operation: "UPDATE", oldObject };
    assert.equal(await said(world, "/validate/claims", oldObject, over), "");
    const retained = await store(world, "shop/mysql-0", { retention: { whenDeleted: "Retain" } });
    assert.equal(
      await said(world, "/validate/claims", retained, over),
      "claim shop/mysql-0 was made for StatefulSet mysql, ordinal 0; when its pod is created again, what the pod asks for is written over this",
    );
    const stolen = await store(world, "shop/mysql-0", {
      identity: { kind: "Pod", apiVersion: "v1", name: "x" },
    });
    assert.equal(
      await said(world, "/validate/claims", stolen, over),
      "REQUEST_INVALID: spec.identity is written by berth; leave it as it is",
    );
  });
});
