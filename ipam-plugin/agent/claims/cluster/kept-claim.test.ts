// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../../allocator/base/errors.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import { ask, NodeWorld, podOf } from "../../testing/node-world.ts";

const ORDINAL = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
const NOT_BOUND =
  "CLAIM_BUSY: claim shop/mysql-0 is kept for Pod mysql-0, and pod shop/mysql-0 was created without a review by Berth: it is bound to the pod once a Berth webhook runs, if the pod's node is one of its pool's; else delete the pod, so that it is created again; try again";

describe("a pod that asks for nothing and may not have been reviewed", () => {
  let node: NodeWorld;
  beforeEach(async () => {
    node = await NodeWorld.open();
    node.unreviewed = true;
    node.claims = node.another();
    await node.pin("mysql-0", "10.20.0.71");
    node.see(podOf("mysql-0"));
  });
  afterEach(() => node.close());

  async function change(over: Partial<Claim>): Promise<void> {
    const seen = (await node.world.realStore.get("claim", "shop/mysql-0")) ?? assert.fail();
    await node.world.realStore.replace("claim", seen, { ...seen.record, ...over });
  }

  it("waits for a claim that was made by hand, and gets its address when it is bound", async () => {
    await change({ handMade: true });
    assert.equal(await node.said(ask("mysql-0")), NOT_BOUND);
    node.view.changed = async () => {
      await node.bind("mysql-0", "uid-mysql-0");
      await node.hear("mysql-0");
    };
    assert.equal(await node.said(ask("mysql-0")), "10.20.0.71 of shop/mysql-0");
  });

  it("waits for one that another pod of its name had", async () => {
    await node.bind("mysql-0", "uid-before");
    await node.hear("mysql-0");
    assert.equal(await node.said(ask("mysql-0")), NOT_BOUND);
  });

  it("waits for its ordinal's claim only where that was made by hand", async () => {
    await change({ identity: ORDINAL, handMade: true });
    assert.match(await node.said(ask("mysql-0")), /^CLAIM_BUSY: claim shop\/mysql-0 is kept for StatefulSet/);
    // a pod had it before
    await node.bind("mysql-0", "uid-before");
    await node.hear("mysql-0");
    await change({ identity: ORDINAL, handMade: false });
    assert.equal(await node.said(ask("mysql-0")), "unclaimed");
  });

  it("is refused before anything is loaded, too", async () => {
    await change({ handMade: true });
    node.view.isSynced = false;
    assert.equal(await node.said(ask("mysql-0", { annotations: {} })), NOT_BOUND);
  });

  it("needs no API server where it is seen to be up, or to be one that no review reaches", async () => {
    await change({ handMade: true });
    node.fault = new BerthError("STORE_UNAVAILABLE", "no answer");
    node.see(podOf("mysql-0", { up: true }));
    assert.equal(await node.said(ask("mysql-0")), "unclaimed");
    node.see(podOf("mysql-0", { annotations: { "kubernetes.io/config.mirror": "x" } }));
    assert.equal(await node.said(ask("mysql-0")), "unclaimed");
  });

  it("gets no address while the API server does not say whether there is a claim", async () => {
    node.fault = new BerthError("STORE_UNAVAILABLE", "no answer");
    await assert.rejects(node.said(ask("mysql-0")), node.fault);
  });

  for (const [what, over] of [
    ["that only a review has made", {}],
    ["that is given back", { handMade: true, releasing: true }],
    [
      "of another pod",
      { handMade: true, binding: { token: "", podName: "b", podUID: "u", node: "x", since: 0 } },
    ],
    ["for another interface", { handMade: true, interface: "net1" }],
    ["of its ordinal, whose template may have stopped asking", { identity: ORDINAL }],
    ["that is a slot", { handMade: true, identity: { ...ORDINAL, kind: "Deployment", slot: 0 } }],
  ] as const) {
    it(`does without a claim ${what}`, async () => {
      await change(over);
      assert.equal(await node.said(ask("mysql-0")), "unclaimed");
    });
  }

  it("keeps the address that it has: one that is up, seen here or not, and one that no review reaches", async () => {
    await change({ handMade: true });
    const up = podOf("mysql-0", { up: true });
    node.see(up);
    assert.equal(await node.said(ask("mysql-0")), "unclaimed");
    node.forget("mysql-0");
    node.pods.set("shop/mysql-0", up);
    assert.equal(await node.said(ask("mysql-0", { annotations: {} })), "unclaimed");
    node.see(podOf("mysql-0", { annotations: { "kubernetes.io/config.mirror": "x" } }));
    assert.equal(await node.said(ask("mysql-0")), "unclaimed");
  });

  it("costs one look by its name, and none where each pod is reviewed", async () => {
    node.see(podOf("plain"));
    node.calls.length = 0;
    assert.equal(await node.said(ask("plain")), "unclaimed");
    assert.deepEqual(node.calls, ["get shop/plain"]);
    node.unreviewed = false;
    await change({ handMade: true });
    assert.equal(await node.said(ask("mysql-0"), node.another()), "unclaimed");
    assert.deepEqual(node.calls, ["get shop/plain"]);
  });
});
