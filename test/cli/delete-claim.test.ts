// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { namespaceObject, pod, workload } from "../support/objects.ts";
import { POOL } from "./shop.ts";
import { newFolder, removeFolder, Stack } from "./stack.ts";

describe("berthctl delete of a claim", () => {
  let stack: Stack;
  before(async () => {
    stack = await Stack.up(await newFolder());
    assert.equal((await stack.apply(POOL, namespaceObject("shop"))).rc, 0);
  });
  after(async () => {
    await stack.stop();
    await removeFolder(stack.dataDir);
  });

  it("says who wants a claim still that is deleted, as release does", async () => {
    const set = workload("StatefulSet", "queue", { replicas: 1, annotations: { "berth.dev/pools": "db" } });
    assert.equal((await stack.apply(set)).rc, 0);
    const wanted =
      /StatefulSet shop\/queue still has ordinal 0: nothing is kept for its pod queue-0 any more/;
    const rehearsal = await stack.call("delete", "claim/shop/queue-0", "--dry-run");
    assert.match(rehearsal.stdout, wanted);
    const { rc, stdout, stderr } = await stack.call("delete", "claim/shop/queue-0");
    assert.deepEqual([rc, stdout], [0, "ipclaim/shop/queue-0 deleted\n"]);
    assert.match(stderr, wanted);
    assert.equal((await stack.apply(pod("lone", { annotations: { "berth.dev/pools": "db" } }))).rc, 0);
    const lone = await stack.call("delete", "claim/shop/lone");
    assert.match(
      lone.stderr,
      /^Warning: pod shop\/lone was admitted with this claim and cannot start without/,
    );
    const rest = await stack.call("delete", "statefulset/shop/queue", "pod/shop/lone");
    assert.deepEqual([rest.rc, rest.stderr], [0, ""]);
  });
});
