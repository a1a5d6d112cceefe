// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dryRunSlot } from "../../allocator/demand/slots.ts";
import { admit, NO_PROOF, opened } from "../../allocator/demand/testing/slots.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { entries, slotsFor } from "../../test/support/allocation-requests.ts";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { type Json, pod } from "../../test/support/objects.ts";
import { ClusterObjects } from "./cluster-objects.ts";

/** An API server that has these pods in namespace shop, and nothing else. */
function clusterOf({ pods = [], mayList = true }: { pods?: readonly Json[]; mayList?: boolean }) {
  const answer = async ({ path }: Call) => {
    if (path.endsWith("/pods")) {
      const no = {
        kind: "Status",
        reason: "Forbidden",
        message: 'pods is forbidden: User "dev" cannot list ',
      };
      if (!mayList) return { status: 403, body: no };
      return { status: 200, body: { metadata: { resourceVersion: "9" }, items: pods } };
    }
    const name = path.slice(path.lastIndexOf("/") + 1);
    const found = pods.find(({ metadata }) => (metadata as Json)["name"] === name);
    const absent = { kind: "Status", reason: "NotFound", details: { name } };
    return found === undefined ? { status: 404, body: absent } : { status: 200, body: found };
  };
  const connection: Connection = { call: answer, stream: answer, close: () => {} };
  return new ClusterObjects(connection);
}

function podOf(name: string, uid: string, annotations: Record<string, string> = {}): Json {
  const bare = pod(name, { uid, annotations });
  const metadata = { ...(bare["metadata"] as Json), resourceVersion: "1" };
  const creationTimestamp = "2026-01-01T00:00:00Z";
  return { ...bare, metadata: { ...metadata, creationTimestamp }, status: { phase: "Pending" } };
}

describe("what the tool sees of a cluster", () => {
  it("has an entry of a list free that is held for a pod which was met and is gone, as admission has it", async () => {
    await using world = await opened();
    const list = entries("10.20.0.70");
    const first = await admit(world, list);
    assert.ok(typeof first !== "string");
    const met = { name: "web-a", uid: "u1", node: "", token: first.token };
    granted(await bind(world.context, "shop/web-slot-0", met, NO_PROOF));
    await world.settle();
    const would = (...pods: readonly Json[]) =>
      dryRunSlot(world.context, clusterOf({ pods }), slotsFor(world, list));
    assert.match(refusalOf(await would(podOf("web-a", "u1"))), /^SET_EXHAUSTED: .* is bound to pod web-a;/);
    assert.equal(granted(await would()).claim, "web-slot-0");
  });

  it("knows the pod that waits by its token, unless pods may not be listed", async () => {
    const pods = [podOf("web-a", "u1", { "berth.dev/token": "t1" })];
    assert.equal((await clusterOf({ pods }).admittedWith("shop", "t1"))?.name, "web-a");
    assert.equal(await clusterOf({ pods }).admittedWith("shop", "t2"), undefined);
    assert.equal(await clusterOf({ pods, mayList: false }).admittedWith("shop", "t1"), undefined);
  });
});
