// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError, isRefusal } from "../../../../allocator/base/errors.ts";
import { KeyedMutex } from "../../../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { attachmentOf } from "../../../../test/support/fixtures.ts";
import { ifUnused } from "../../background/orphan-sweeper.ts";
import type { AgentServices } from "../../services/services.ts";
import { PlainHost } from "../../testing/node-bench.ts";
import { ask, NODE, NodeWorld, noticeOf, podOf } from "../../testing/node-world.ts";

let node: NodeWorld;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeWorld.open();
  });
  afterEach(() => node.close());
}

const lost = () => new BerthError("TIMED_OUT", "the API server does not answer");
/** What a DEL does, and the look at the claim behind it. */
const delAndSettle = async (name: string) => {
  await node.claims.detached(noticeOf(name));
  await node.settle(`shop/${name}`);
};

describe("a claim without a sandbox", () => {
  setUp();

  it("is not let go where another agent has taken the journal while the API server was asked", async () => {
    await node.assign("a", "10.20.0.70");
    await node.addAndReport("a");
    node.forget("a");
    const takenOver = () => assert.ok(!node.calls.includes("pod shop/a"), "taken over");
    await assert.rejects(
      node.claims.settle("shop/a", () => false, takenOver),
      /taken over/,
    );
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("is kept while its pod is there", async () => {
    await node.assign("a", "10.20.0.70");
    assert.deepEqual(node.claims.inUse(), ["shop/a"]);
    await node.addAndReport("a");
    node.unread = { path: "/r/net-box-z-eth0", containerID: "box-z", interface: "eth0" };
    await delAndSettle("a");
    assert.deepEqual(node.warnings, [], "the runtime's records are not read for that");
    assert.deepEqual(node.calls, ["report shop/a Attached"]);
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("is kept when only the watch says that the pod is gone, or ended, or when nobody can say", async () => {
    await node.assign("a", "10.20.0.70");
    node.view.seePod({ namespace: "shop", name: "a" }, undefined);
    await node.settle("shop/a");
    node.fault = lost();
    await assert.rejects(node.settle("shop/a"), /does not answer/);
    assert.deepEqual(node.calls, ["pod shop/a", "pod shop/a"]);
    assert.equal(await node.status("a"), "not reported");
    node.view.isSynced = false;
    await node.settle("shop/a");
    assert.deepEqual([node.calls.length, node.claims.inUse()], [2, []]);
  });

  for (const [how, end] of [
    ["gone", () => node.forget("a")],
    ["replaced by another of its name", () => node.see(podOf("a", { uid: "uid-2" }))],
    ["ended", () => node.see(podOf("a", { finished: true }))],
  ] as const) {
    it(`is let go when its pod is ${how}`, async () => {
      await node.assign("a", "10.20.0.70");
      await node.addAndReport("a");
      end();
      await delAndSettle("a");
      assert.equal(await node.status("a"), "Detached box-a for uid-a");
      await node.settle("shop/a"); // the watch has not told of it
      await node.hear("a");
      assert.deepEqual(node.claims.inUse(), []);
      await node.settle("shop/a");
      assert.deepEqual(node.calls, ["report shop/a Attached", "pod shop/a", "report shop/a Detached"]);
    });
  }

  it("is let go for a pod that never had one, and may go to another node then", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    assert.ok(isRefusal(await node.bind("a", "uid-2", "node-b")));
    await node.settle("shop/a");
    assert.equal(await node.status("a"), "Detached  for uid-a");
    assert.ok(!isRefusal(await node.bind("a", "uid-2", "node-b")));
  });

  it("is kept for a sandbox that the runtime alone has a record of, until its namespace is gone", async () => {
    node.runtimeRecord = "kept";
    await node.assign("a", "10.20.0.70");
    await node.add(ask("a"));
    await node.claims.report("shop/a");
    node.forget("a");
    // another journal is adopted, which knows nothing
    const [claimSource, host] = [node.another(), new PlainHost()];
    const attachments = { ofClaim: () => [], knows: () => false } as unknown as AgentServices["attachments"];
    const [locks, journal] = [new KeyedMutex(), { requireOurs: () => {} }];
    const parts = { attachments, journal, locks, claimSource, host, bootId: "boot-1", log: noopLogger };
    const settle = () => ifUnused("shop/a", parts, (isKnown) => claimSource.settle("shop/a", isKnown));
    const seen = { netns: "/run/netns/a", bootID: "boot-1" };
    node.recorded.set("10.20.0.70", attachmentOf("a", { node: NODE, podUID: "uid-a", ...seen }));
    host.present.add(seen.netns);
    await settle();
    assert.equal(await node.status("a"), "not reported");
    host.present.delete(seen.netns);
    node.unread = { path: "/r/net-box-a-eth0", containerID: "box-a", interface: "eth0" };
    await settle();
    assert.equal(await node.status("a"), "not reported", "what cannot be read is not known, and not gone");
    node.unread = undefined;
    await settle();
    assert.match(await node.status("a"), /^Detached /);
  });

  it("is not let go for a pod that it is bound to meanwhile", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    assert.ok(!isRefusal(await node.bind("a", "uid-2"))); // the watch is behind
    await node.settle("shop/a");
    assert.deepEqual(node.calls, ["pod shop/a", "report shop/a Detached", "get shop/a"]);
    assert.equal(await node.status("a"), "not reported");
    node.see(podOf("a", { uid: "uid-2" }));
    await node.hear("a");
    const next = ask("a", { pod: { namespace: "shop", name: "a", uid: "uid-2" } });
    assert.equal(await node.said(next), "10.20.0.70 of shop/a");
    assert.equal(node.calls.length, 3, "what was written for the other pod says nothing about this one");
  });

  it("is let go again where the watch never tells of it, as of an etcd that was restored", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    await node.settle("shop/a");
    node.world.clock.advance(10_000);
    await node.settle("shop/a");
    const once = ["pod shop/a", "report shop/a Detached"];
    assert.deepEqual(node.calls, [...once, ...once, "get shop/a"]);
  });

  it("whose status others keep changing is tried again later", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    node.reporting = async () => ({ kind: "conflict" });
    await assert.rejects(node.settle("shop/a"), /claim shop\/a kept changing while its status was written/);
  });
});

describe("an ADD after its claim was let go, or may have been", () => {
  setUp();

  it("asks the authority and writes to it first", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    await node.settle("shop/a");
    node.calls.length = 0;
    node.see(podOf("a")); // as it may look from a node that is behind
    assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
    assert.deepEqual(node.calls, ["get shop/a", "report shop/a Attached"]);
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("is refused when the claim has moved", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    await node.settle("shop/a");
    assert.ok(!isRefusal(await node.bind("a", "uid-2", "node-b")));
    node.see(podOf("a"));
    assert.match(
      await node.said(ask("a")),
      /^CLAIM_BUSY: claim shop\/a \(\S+\) is still bound to pod a on node node-b/,
    );
    assert.equal(await node.status("a"), "Detached  for uid-a");
  });

  for (const outcome of ["written", "not written"] as const) {
    it(`does not believe its memory when nobody knows whether that was written: ${outcome}`, async () => {
      await node.assign("a", "10.20.0.70");
      node.forget("a");
      node.reporting = async (real, seen, status) => {
        if (outcome === "written") await real(seen, status);
        throw lost();
      };
      await assert.rejects(node.settle("shop/a"), /does not answer/);
      node.reporting = undefined;
      node.see(podOf("a"));
      node.calls.length = 0;
      assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
      assert.deepEqual(node.calls, ["get shop/a", "report shop/a Attached"]);
      assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
      assert.equal(node.calls.length, 2, "proven once, memory counts again");
    });
  }

  it("a write that comes late finds that the sandbox has it", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    const landing = Promise.withResolvers<() => Promise<string>>();
    node.reporting = async (real, seen, status) => {
      landing.resolve(async () => (await real(seen, status)).kind);
      throw lost();
    };
    await assert.rejects(node.settle("shop/a"));
    node.reporting = undefined;
    node.see(podOf("a"));
    assert.equal(await node.said(ask("a")), "10.20.0.70 of shop/a");
    const land = await landing.promise;
    assert.equal(await land(), "conflict");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("another process may have let it go for a pod that this one does not see alive", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    const next = node.another();
    await node.settle("shop/a"); // of the process before it: the view of the next one is older
    assert.ok(!isRefusal(await node.bind("a", "uid-2", "node-b")));
    assert.match(
      await node.said(ask("a"), next),
      /^CLAIM_BUSY: claim shop\/a \(\S+\) is still bound to pod a/,
    );
    node.see(podOf("a", { finished: true }));
    assert.match(
      await node.said(ask("a"), next),
      /^CLAIM_BUSY: claim shop\/a \(\S+\) is still bound to pod a/,
    );
  });

  it("is refused without the API server, and is not counted as attached", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    await node.settle("shop/a");
    node.see(podOf("a"));
    node.reporting = async () => {
      throw lost();
    };
    await assert.rejects(node.add(ask("a")), /does not answer/);
    node.reporting = undefined;
    node.calls.length = 0;
    await node.claims.report("shop/a");
    assert.deepEqual(node.calls, []);
  });

  it("that was given up writes nothing any more, or is looked at again", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    await node.settle("shop/a");
    await node.hear("a");
    node.see(podOf("a"));
    node.calls.length = 0;
    node.suspects.length = 0;
    const over = new AbortController();
    over.abort();
    await assert.rejects(node.add(ask("a"), { signal: over.signal }), /given up while its claim was bound/);
    assert.deepEqual([node.calls, node.suspects], [["get shop/a"], ["shop/a"]]);
    const late = new AbortController();
    node.reporting = async (real, seen, status) => {
      late.abort();
      return await real(seen, status);
    };
    await assert.rejects(node.add(ask("a"), { signal: late.signal }), /given up while its claim was bound/);
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
    node.reporting = undefined;
    node.forget("a");
    await node.hear("a");
    await node.settle("shop/a");
    assert.equal(await node.status("a"), "Detached box-a for uid-a");
  });
});
