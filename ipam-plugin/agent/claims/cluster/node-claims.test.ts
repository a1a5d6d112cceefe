// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isRefusal } from "../../../../allocator/base/errors.ts";
import { addrs, attachmentOf } from "../../../../test/support/fixtures.ts";
import { ask, NODE, NodeWorld, noticeOf, podOf } from "../../testing/node-world.ts";

let node: NodeWorld;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeWorld.open();
  });
  afterEach(() => node.close());
}

describe("an ADD of a pod whose claim is known", () => {
  setUp();

  it("asks nobody, and the status is written once, behind it", async () => {
    await node.assign("a", "10.20.0.70");
    assert.deepEqual(await node.add(ask("a")), {
      kind: "claimed",
      claim: "shop/a",
      addresses: [{ address: "10.20.0.70", prefixLength: 24, gateway: "10.20.0.100" }],
      routes: [],
      dns: {},
    });
    assert.deepEqual([node.calls, node.suspects], [[], ["shop/a"]]);
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
    await node.hear("a");
    await node.claims.report("shop/a");
    assert.deepEqual(node.calls, ["report shop/a Attached"]);
  });

  it("is nothing to write where the runtime has its record, and the kubelet tells of the interface", async () => {
    node.runtimeRecord = "kept";
    await node.assign("a", "10.20.0.70");
    await node.add(ask("a"));
    await node.claims.report("shop/a");
    await node.claims.report("shop/a");
    assert.deepEqual([node.calls, node.suspects.splice(0), node.recordReads], [[], ["shop/a"], 1]);
    await node.add(ask("a", { attachment: { network: "net", containerID: "box-2", interface: "eth0" } }));
    await node.claims.report("shop/a");
    assert.deepEqual([node.suspects.splice(0), node.recordReads], [["shop/a"], 2], "of another sandbox");
    const net1 = { network: "net", containerID: "box-b", interface: "net1" };
    await node.assign("b", "10.20.0.71");
    await node.add(ask("b", { attachment: net1 }));
    await node.claims.report("shop/b");
    assert.equal(await node.status("b"), "Attached box-b for uid-b");
  });

  it("is written once the runtime has had time for its record, and has none", async () => {
    node.runtimeRecord = "missing";
    await node.assign("a", "10.20.0.70");
    await node.add(ask("a"));
    node.suspects.length = 0;
    await node.claims.report("shop/a");
    assert.deepEqual([node.calls, node.suspects], [[], ["shop/a"]], "it is looked at again");
    node.world.clock.advance(5_000);
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("is written where it alone says which of several interfaces has the claim", async () => {
    node.runtimeRecord = "kept";
    await node.assign("a", "10.20.0.70");
    node.see(podOf("a", { annotations: { "k8s.v1.cni.cncf.io/networks": "lan" } }));
    await node.add(ask("a"));
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("is written where another interface of the pod asks, too, whatever its annotations say", async () => {
    node.runtimeRecord = "kept";
    const on = (containerID: string, name: string) =>
      ask("a", { attachment: { network: name === "eth0" ? "net" : "lan", containerID, interface: name } });
    await node.assign("a", "10.20.0.70");
    node.see(podOf("a"));
    assert.match(await node.said(on("box-1", "eth0")), /^10\.20\.0\.70 /);
    assert.equal(await node.said(on("box-1", "eth1")), "unclaimed");
    await node.claims.report("shop/a");
    await node.hear("a");
    assert.equal(await node.status("a"), "Attached box-1 for uid-a");
    node.claims = node.another(); // after a reboot nothing is attached, and the pod is there
    assert.equal(await node.said(on("box-2", "eth1")), "unclaimed");
    assert.match(await node.said(on("box-2", "eth0")), /^10\.20\.0\.70 /);
  });

  it("is known from the runtime's records at the start, where the status says nothing", async () => {
    await node.assign("a", "10.20.0.70");
    assert.deepEqual(await node.claims.lastSandboxes("shop/a"), []);
    const sandbox = attachmentOf("a", { node: NODE, podUID: "uid-a" });
    node.recorded.set("10.20.0.70", sandbox);
    assert.deepEqual(await node.claims.lastSandboxes("shop/a"), [sandbox]);
  });

  it("puts a status right that says that the sandbox of this very pod has ended", async () => {
    node.runtimeRecord = "kept";
    await node.assign("a", "10.20.0.70");
    await node.add(ask("a"));
    const seen = await node.world.realStore.get("claim", "shop/a");
    assert.ok(seen);
    await node.world.realStore.report(seen, {
      attachment: attachmentOf("a", { node: NODE, podUID: "uid-a", detached: true }),
    });
    await node.hear("a");
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-a for uid-a");
  });

  it("puts a status right that names another sandbox, whoever else knows of this one", async () => {
    await node.assign("a", "10.20.0.70");
    await node.add(ask("a"));
    await node.claims.report("shop/a");
    await node.hear("a");
    node.runtimeRecord = "kept";
    await node.add(ask("a", { attachment: { network: "net", containerID: "box-2", interface: "eth0" } }));
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-2 for uid-a");
  });

  it("serves one interface of the pod, the first that asks, for all its sandboxes", async () => {
    await node.assign("a", "10.20.0.70");
    const over = (containerID: string, name: string) =>
      ask("a", { attachment: { network: "net", containerID, interface: name } });
    assert.equal(await node.said(over("box-1", "net1")), "10.20.0.70 of shop/a");
    assert.equal(await node.said(over("box-1", "eth0")), "unclaimed");
    await node.claims.detached({ ...noticeOf("a", "box-1"), attachment: over("box-1", "net1").attachment });
    await node.settle("shop/a");
    assert.equal(await node.said(over("box-2", "eth0")), "unclaimed");
    assert.equal(await node.said(over("box-2", "net1")), "10.20.0.70 of shop/a");
    await node.claims.report("shop/a");
    await node.hear("a");
    const next = node.another();
    assert.equal(await node.said(over("box-3", "eth0"), next), "unclaimed");
    assert.equal(await node.said(over("box-3", "net1"), next), "10.20.0.70 of shop/a");
  });

  it("is refused what contradicts the claim, in the words of the embedded stack", async () => {
    await node.assign("a", "10.20.0.70");
    const annotations = { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.71" };
    assert.deepEqual(
      [
        await node.said(ask("a", { addresses: addrs("10.20.0.71") })),
        await node.said(ask("a", { annotations })),
      ],
      [
        "CLAIM_CHANGED: the runtime asks for 10.20.0.71, and claim shop/a holds 10.20.0.70; remove one of the two requests",
        "CLAIM_CHANGED: claim shop/a holds 10.20.0.70 now, and pod a was admitted with 10.20.0.71; delete the pod and create it again",
      ],
    );
  });

  it("is refused when the claim is given back, or went while another sandbox ended", async () => {
    await node.assign("a", "10.20.0.70");
    const found = await node.claims.find(ask("a"), new AbortController().signal);
    assert.ok(found.kind === "found");
    node.view.seeClaim("shop/a", undefined);
    const got = await node.claims.attach(found, ask("a"), new AbortController().signal);
    assert.ok(isRefusal(got));
    assert.equal(
      got.message,
      "claim shop/a was changed or given back while it was being attached; try again",
    );
    await node.hear("a");
    const seen = node.view.claim("shop/a");
    assert.ok(seen);
    await node.world.realStore.replace("claim", seen, { ...seen.record, releasing: true });
    await node.hear("a");
    assert.equal(
      await node.said(ask("a")),
      "CLAIM_RELEASING: the addresses of claim shop/a are being given back; try again in a moment",
    );
  });
});

describe("the status of a claim", () => {
  setUp();

  it("names the sandbox of the journal after a start, whatever it said before", async () => {
    await node.assign("a", "10.20.0.70");
    await node.claims.attached(noticeOf("a", "box-of-old"));
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-of-old for uid-a");
  });

  it("names the newest sandbox; the end of an older one changes nothing", async () => {
    await node.assign("a", "10.20.0.70");
    await node.addAndReport("a");
    const second = ask("a", { attachment: { network: "net", containerID: "box-2", interface: "eth0" } });
    assert.equal((await node.add(second)).kind, "claimed");
    await node.claims.detached(noticeOf("a"));
    await node.claims.report("shop/a");
    assert.equal(await node.status("a"), "Attached box-2 for uid-a");
  });

  it("says nothing about a sandbox that ended before it was written, or one that the claim is not bound to", async () => {
    await node.assign("a", "10.20.0.70");
    assert.equal((await node.add(ask("a"))).kind, "claimed");
    await node.claims.detached(noticeOf("a"));
    await node.claims.report("shop/a");
    assert.equal((await node.add(ask("a"))).kind, "claimed");
    node.forget("a");
    assert.ok(!isRefusal(await node.bind("a", "uid-2")));
    await node.claims.report("shop/a"); // seen as it was
    await node.hear("a");
    await node.claims.report("shop/a");
    await node.claims.report("shop/b");
    assert.equal(await node.status("a"), "not reported");
  });

  it("a sandbox whose claim was taken from the node is told of", async () => {
    await node.assign("a", "10.20.0.70");
    await node.addAndReport("a");
    node.claims.changed("shop/a", node.view.claim("shop/a"));
    assert.deepEqual(node.warnings, []);
    node.claims.changed("shop/a", undefined);
    assert.deepEqual(node.warnings, [{ claim: "shop/a", containerID: "box-a", node: NODE }]);
    await node.claims.detached(noticeOf("a"));
    node.claims.changed("shop/a", undefined);
    assert.equal(node.warnings.length, 1);
  });
});
