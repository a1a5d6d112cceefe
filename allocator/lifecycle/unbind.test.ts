// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FailingStore } from "../../test/support/failing-store.ts";
import { attachmentOf, bindingTo, claimRecord, DB_POOL } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { type Claim, hadPod } from "../model/claim.ts";
import { isDetached } from "./bind.ts";
import { unbind } from "./unbind.ts";

describe("a claim whose binding is taken away", () => {
  const cases: readonly (readonly [string, Partial<Claim>, boolean])[] = [
    ["was bound, and no agent has spoken", { binding: bindingTo("web-x", "node-a") }, true],
    [
      "was bound, and its agent has spoken",
      { binding: bindingTo("web-x", "node-a"), status: { attachment: attachmentOf("web-x") } },
      true,
    ],
    ["was held for a pod that never came", { binding: bindingTo("web-x", "") }, false],
    ["was nobody's", {}, false],
    ["was bound without a UID", { binding: bindingTo("web-x", "node-a", { podUID: "" }) }, false],
  ];
  for (const [what, over, had] of cases)
    it(`keeps whether a pod ever had it: it ${what}`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const made = await world.realStore.create("claim", claimRecord(over));
      assert.ok(made.kind === "created");
      const free = await unbind(world.context, made.stored);
      assert.ok(free);
      assert.equal(free.record.binding, undefined);
      assert.equal(hadPod(free.record), had);
      assert.deepEqual((await world.realStore.get("claim", made.stored.key))?.record, free.record);
      if (over.status !== undefined) assert.deepEqual(free.record.status, over.status);
    });

  it("is left alone when somebody changed it meanwhile", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await world.realStore.create(
      "claim",
      claimRecord({ binding: bindingTo("web-x", "node-a") }),
    );
    assert.ok(made.kind === "created");
    await world.realStore.report(made.stored, { message: "changed" });
    assert.equal(await unbind(world.context, made.stored), undefined);
  });

  it("is still its pod's when the process dies before the binding is gone", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await world.realStore.create(
      "claim",
      claimRecord({ binding: bindingTo("web-x", "node-a") }),
    );
    assert.ok(made.kind === "created");
    const store = new FailingStore(world.realStore, 2);
    await assert.rejects(unbind({ ...world.context, store }, made.stored));
    const left = await world.realStore.get("claim", made.stored.key);
    assert.ok(left?.record.status.attachment, "the pod was recorded");
    assert.equal(isDetached(left.record), false, "which proves nothing of the binding");
  });
});
