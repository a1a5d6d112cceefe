// SPDX-License-Identifier: Apache-2.0
// What the handlers decide where an API server keeps the objects.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Store } from "../../allocator/store/store.ts";
import { addrs, DB_POOL } from "../../test/support/fixtures.ts";
import {
  applied,
  type Json,
  namespaceObject,
  pod,
  poolObject,
  workload,
} from "../../test/support/objects.ts";
import { createPod } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { bound, PIN, POOLS, type Sending, said, send } from "../testing/cluster-reviews.ts";

describe("the guard over pods in a cluster", () => {
  it("refuses a pod that asks and has no claim, but not a rehearsal, which is given none", async () => {
    await using world = await openWorld({ pools: POOLS });
    const late = pod("a", { annotations: PIN });
    assert.equal(
      await said(world, "/validate/pods", late),
      "CLAIM_MISSING: pod shop/a asks for an address and no claim was made for it; another webhook added the annotation after Berth was asked; write it into the pod itself",
    );
    assert.equal(await said(world, "/validate/pods", late, { dryRun: true }), "");
    const made = applied(late, await send(world, "/mutate/pods", late));
    assert.equal(await said(world, "/validate/pods", made), "");
    assert.equal(await said(world, "/validate/pods", pod("b")), "");
    assert.equal(
      await said(world, "/validate/pods", pod("c", { annotations: PIN, spec: { hostNetwork: true } })),
      "",
    );
  });

  it("refuses a pod that asks for nothing and was given what its claim had before, by a copy that was behind", async () => {
    await using world = await openWorld({ pools: POOLS });
    await createPod(world, pod("a", { annotations: PIN }), "a");
    const reported = { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.71" };
    const plain = pod("a", { annotations: reported, uid: "uid-2" });
    assert.equal(
      await said(world, "/validate/pods", plain),
      "CLAIM_CHANGED: claim shop/a holds 10.20.0.70 now, and this pod was given 10.20.0.71 while another one of its name was on its way; create it again",
    );
    const asTold = { ...reported, "berth.dev/addresses": "10.20.0.70" };
    assert.equal(await said(world, "/validate/pods", pod("a", { annotations: asTold })), "");
    // the copy that is behind is this one
    const seen = (await world.realStore.get("claim", "shop/a")) ?? assert.fail();
    const moved = { ...seen, record: { ...seen.record, addresses: addrs("10.20.0.71") } };
    const store: Store = Object.create(world.store, { get: { value: async () => moved } });
    const admission = { context: { ...world.context, store } };
    assert.equal(await said(world, "/validate/pods", plain, { admission }), "");
  });

  it("keeps what berth wrote into a pod as it is, and lets everything else change", async () => {
    await using world = await openWorld({ pools: POOLS });
    const own = { ...PIN, "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.70" };
    const before = pod("a", { annotations: own });
    const change = async (annotations: Record<string, string>, over: Sending = {}) =>
      await said(world, "/validate/pods", pod("a", { annotations }), {
        operation: "UPDATE",
        oldObject: before,
        ...over,
      });
    assert.equal(await change({ ...own, note: "x" }), "");
    assert.match(
      await change({ ...own, "berth.dev/ips": "10.20.0.71" }),
      /delete the pod and create it again/,
    );
    const words = (key: string) =>
      `OBJECT_INVALID: annotation ${key} of pod shop/a is written by berth when the pod is created and stays; leave it as it is`;
    assert.equal(await change({ ...own, "berth.dev/claim": "b" }), words("berth.dev/claim"));
    assert.equal(await change({ ...PIN, "berth.dev/claim": "a" }), words("berth.dev/addresses"));
    assert.equal(await change({ ...own, "berth.dev/token": "t" }), words("berth.dev/token"));
    for (const none of [{}, { note: "x" }])
      assert.match(
        await change(none),
        /^REQUEST_INVALID: annotation berth\.dev\/ips of pod shop\/a is read when /,
      );
    for (const subResource of ["status", "ephemeralcontainers"]) {
      assert.equal(
        await change({ ...own, "berth.dev/claim": "b" }, { subResource }),
        words("berth.dev/claim"),
      );
      assert.match(
        await change({ ...own, "berth.dev/ips": "10.20.0.71" }, { subResource }),
        /delete the pod and create it again/,
      );
      assert.equal(await change({ ...own, note: "x" }, { subResource }), "");
    }
    assert.equal(await said(world, "/validate/pods", before, { operation: "DELETE" }), "");
  });
});

describe("a namespace in which nothing can be created", () => {
  const knowing = (world: World, facts: NamespaceState | undefined): Sending => ({
    admission: { inventory: { ...bound(world), namespace: async () => facts } },
  });

  it("has no pod reserve anything, if it is not there or is being deleted", async () => {
    await using world = await openWorld({ pools: POOLS });
    const asking = pod("a", { annotations: PIN });
    const before = world.dump();
    const facts = { name: "shop", labels: {}, annotations: {} };
    for (const dryRun of [false, true]) {
      assert.equal(
        await said(world, "/mutate/pods", asking, { dryRun, ...knowing(world, undefined) }),
        "CLAIM_REFUSED: namespace shop does not exist; create it first",
      );
      assert.equal(
        await said(world, "/mutate/pods", asking, {
          dryRun,
          ...knowing(world, { ...facts, terminating: true }),
        }),
        "CLAIM_REFUSED: namespace shop is being deleted; create the pod in another one",
      );
    }
    assert.equal(world.dump(), before);
    assert.equal(await said(world, "/mutate/pods", pod("b"), knowing(world, undefined)), "");
    assert.equal(await said(world, "/mutate/pods", asking, knowing(world, facts)), "");
  });
});

describe("what stays as it is in a cluster", () => {
  it("is not judged anew: labels and finalizers of a pool, a workload or a namespace may always change", async () => {
    await using world = await openWorld({ pools: POOLS });
    const overlapping = poolObject("db2", DB_POOL.spec as unknown as Json);
    assert.match(await said(world, "/validate/pools", overlapping), /^POOL_OVERLAPS: /);
    const same: Sending = { operation: "UPDATE", oldObject: overlapping };
    assert.equal(await said(world, "/validate/pools", overlapping, same), "");
    const set = workload("StatefulSet", "mysql", { replicas: 3, annotations: PIN });
    assert.match(await said(world, "/validate/workloads", set), /^LIST_TOO_SHORT: /);
    assert.equal(await said(world, "/validate/workloads", set, { operation: "UPDATE", oldObject: set }), "");
  });

  it("says that defaults of a namespace need its label", async () => {
    await using world = await openWorld({ pools: POOLS });
    const defaults = { "berth.dev/pools": "db" };
    const route = "/validate/namespaces";
    assert.equal(
      await said(world, route, namespaceObject("shop", defaults)),
      "annotation berth.dev/pools has no effect on pods without annotations of their own until the namespace has the label berth.dev/admission=enabled",
    );
    const label = { "berth.dev/admission": "enabled" };
    assert.equal(await said(world, route, namespaceObject("shop", defaults, label)), "");
    assert.equal(await said(world, route, namespaceObject("shop", defaults), { operation: "DELETE" }), "");
  });
});
