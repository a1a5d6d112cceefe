// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WorkloadAnswer } from "../../allocator/model/cluster-state.ts";
import type { Answer, Connection } from "../../kube/api/connection.ts";
import { HastyClock } from "../../test/support/clock.ts";
import { poolRecord, workloadFactsOf } from "../../test/support/fixtures.ts";
import { deniedAs, deploymentPod, type Json, ownedBy, pod, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext, Owners } from "./admission-context.ts";
import { LiveOwners } from "./owner-check.ts";
import { createHandlers } from "./routes.ts";

const LIST = { "berth.dev/ips": "10.30.0.70;10.30.0.71" };
const OWNERS: Owners = { isThere: async (_, { uid }) => uid === "uid-of-web-5d9c7b" };
const POOLS = [poolRecord("web", "10.30.0.0/24")];

/** What the review says; "" when the pod is given an entry. */
async function said(world: World, object: Json, over: Partial<AdmissionContext> = {}): Promise<string> {
  const { embedded: _, ...admission } = world.admission;
  const handlers = createHandlers({ ...admission, owners: OWNERS, ...over });
  const response = await handlers["/mutate/pods"](review(object), new AbortController().signal);
  await world.settle();
  return deniedAs(response);
}

describe("an entry of a list", () => {
  const forged = deploymentPod("web", {
    owner: ownedBy("ReplicaSet", "web-5d9c7b", "apps/v1", "guess"),
    annotations: LIST,
  });

  it("is held for pods of the ReplicaSet that is there, and not for those of one with another UID", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    assert.equal(
      await said(world, forged),
      "OBJECT_INVALID: there is no ReplicaSet shop/web-5d9c7b with the UID that this pod has for its owner; an entry of a list is held for pods of an owner that is there",
    );
    assert.equal(world.dump(), before);
    assert.equal(await said(world, deploymentPod("web", { annotations: LIST })), "");
  });

  it("of a CloneSet goes by the CloneSet, and where that cannot be read by the review alone", async () => {
    await using world = await openWorld({ pools: POOLS });
    const kruise = "apps.kruise.io/v1alpha1";
    const { objects } = world;
    const seeing = (workload: WorkloadAnswer): AdmissionContext["inventory"] => ({
      pod: async () => undefined,
      fenced: async () => false,
      namespace: (name) => objects.namespace(name),
      workload: async ({ kind }) => (kind === "CloneSet" ? workload : undefined),
    });
    const podOf = (name: string, uid: string) =>
      pod(name, { owner: ownedBy("CloneSet", "app", kruise, uid), annotations: LIST });
    const there = seeing(workloadFactsOf({ uid: "real" }));
    assert.match(await said(world, podOf("app-x1", "guess"), { inventory: there }), /^OBJECT_INVALID: /);
    assert.match(
      await said(world, podOf("app-x1", "guess"), { inventory: seeing(undefined) }),
      /^OBJECT_INVALID: /,
    );
    assert.equal(await said(world, podOf("app-x1", "real"), { inventory: there }), "");
    assert.equal(await said(world, podOf("app-x2", "guess"), { inventory: seeing("unknown") }), "");
  });

  it("is held for whoever asks where ReplicaSets may not be read, and an address by pool for any pod", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { owners: _, ...none } = { ...world.admission, owners: OWNERS };
    const handlers = createHandlers(none);
    const response = await handlers["/mutate/pods"](review(forged), new AbortController().signal);
    assert.equal(deniedAs(response), "");
    const byPool = deploymentPod("other", { annotations: { "berth.dev/pools": "web" } });
    assert.equal(await said(world, byPool), "");
  });
});

describe("LiveOwners", () => {
  it("reads a ReplicaSet by its name, and again when it was not there or had another UID", async () => {
    const paths: string[] = [];
    let uid = "";
    const connection = {
      call: async ({ path }: { readonly path: string }): Promise<Answer> => {
        paths.push(path);
        const body = { metadata: { name: "web-1", namespace: "shop", uid, resourceVersion: "1" } };
        const missing = {
          kind: "Status",
          status: "Failure",
          reason: "NotFound",
          code: 404,
          details: { name: "web-1" },
        };
        return uid === "" ? { status: 404, body: missing } : { status: 200, body };
      },
    } as unknown as Connection;
    const clock = new HastyClock();
    const owners = new LiveOwners(connection, clock);
    const asked = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "u1" };
    assert.equal(await owners.isThere("shop", asked), false);
    uid = "u2";
    assert.equal(await owners.isThere("shop", asked), false);
    assert.equal(await owners.isThere("shop", { ...asked, uid: "" }), false);
    uid = "u1";
    assert.equal(await owners.isThere("shop", asked), true);
    assert.equal(await owners.isThere("shop", asked), true);
    assert.deepEqual(new Set(paths), new Set(["/apis/apps/v1/namespaces/shop/replicasets/web-1"]));
    assert.equal(paths.length, 4);
  });
});
