// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { namespaceObject, pod, workload } from "../support/objects.ts";
import { POOL } from "./shop.ts";
import { newFolder, removeFolder, Stack } from "./stack.ts";

describe("berthctl delete of a claim, and of its pod", () => {
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

  it("says of a pod that is deleted when its address is free, and how to have it at once", async () => {
    const there = pod("brief", { annotations: { "berth.dev/ips": "10.20.0.90" } });
    assert.equal((await stack.apply(there)).rc, 0);
    assert.equal((await stack.call("delete", "pod/shop/brief", "--dry-run")).stdout.split("\n").length, 2);
    const { rc, stdout } = await stack.call("delete", "pod/shop/brief");
    assert.equal(rc, 0);
    const [title, kept, advice] = stdout.split("\n");
    assert.equal(title, "pod/shop/brief deleted");
    const [, next] = /^ {2}its claim shop\/brief has 10\.20\.0\.90 still: (.*)$/.exec(kept ?? "") ?? [];
    const explained = await stack.call("explain", "claim/shop/brief");
    assert.ok(next !== undefined && explained.stdout.includes(`  next      ${next}\n`), stdout);
    assert.equal(advice, "  to give it back at once: berthctl release shop/brief");
    const wants = pod("other", { annotations: { "berth.dev/ips": "10.20.0.90" } });
    const refused = await stack.apply(wants);
    assert.equal(refused.rc, 1);
    assert.match(refused.stderr, /\(Pod brief\); .*; or release it with: berthctl release shop\/brief\n$/);
    assert.equal((await stack.call("release", "shop/brief")).rc, 0);
  });

  it("says of a pod that is deleted to stop its container, where that is still up", async () => {
    assert.equal((await stack.apply(pod("up", { annotations: { "berth.dev/ips": "10.20.0.91" } }))).rc, 0);
    assert.equal((await stack.cni("ADD", "up")).rc, 0);
    const deleted = await stack.call("delete", "pod/shop/up");
    assert.match(
      deleted.stdout,
      /deleted\n {2}its claim shop\/up has 10\.20\.0\.91 as long as container \S+ is up\n$/,
    );
    const refused = await stack.apply(pod("other", { annotations: { "berth.dev/ips": "10.20.0.91" } }));
    assert.match(
      refused.stderr,
      /; or stop container sandbox-of-\S* of pod up, which is deleted, and if its/,
    );
    const busy = await stack.call("release", "shop/up");
    assert.match(busy.stderr, /; the pod is deleted: stop its container first, or use --force if/);
    const denied = await stack.call("delete", "claim/shop/up");
    assert.match(denied.stderr, /; the pod is deleted: stop its container first$/m);
    assert.equal((await stack.cni("DEL", "up")).rc, 0);
  });
});
