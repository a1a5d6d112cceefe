// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { errorOf, NodeBench } from "../testing/node-bench.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
  });
  afterEach(() => node.close());
}

describe("DEL", () => {
  setUp();

  it("succeeds for what was never attached, twice, and without a netns", async () => {
    await node.del({ cid: "unknown" });
    await node.del({ cid: "unknown", netns: "" });
  });

  it("leaves other interfaces, containers and networks alone", async () => {
    await node.add({ cid: "a" });
    const kept = [...(await node.add({ cid: "a", ifname: "eth1" })), ...(await node.add({ cid: "b" }))];
    await node.del({ cid: "a" });
    await node.del({ cid: "b", conf: { name: "other" } });
    assert.deepEqual(node.held, kept);
  });

  it("does not need a configuration that makes sense, known arguments or a known version", async () => {
    const odd: readonly object[] = [
      { ipam: {} },
      { ipam: { subnet: 5, ranges: "x", routes: [{}] } },
      { conf: { ipam: "x" } },
      { conf: { ipam: null } },
      { conf: { cniVersion: "9.9.9" } },
      { conf: { cniVersion: 1 } },
      { conf: { prevResult: "x" } },
      { conf: { prevResult: { ips: [{ address: "10.1.2.99/24" }] } } },
      { args: "FOO=BAR" },
      { args: "IP=x" },
      { ipam: { subnet: "10.77.0.0/24" } },
    ];
    for (const asked of odd) {
      await node.add();
      await node.del(asked);
      assert.deepEqual(node.held, [], JSON.stringify(asked));
    }
  });

  it("needs to know the network", async () => {
    assert.equal(errorOf(await node.call("DEL", { stdin: "{" })).code, 6);
    assert.equal(errorOf(await node.call("DEL", { conf: { name: "" } })).code, 7);
  });

  it("that began before the attachment was made does not touch it", async () => {
    const early = node.nextNs();
    const given = await node.add();
    await node.del({ startNs: early });
    assert.deepEqual(node.held, given);
  });

  it("that began before an ADD was repeated does not touch what that one was answered", async () => {
    const given = await node.add();
    const early = node.nextNs();
    node.host.present.add("/run/netns/next");
    assert.deepEqual(await node.add({ netns: "/run/netns/next" }), given);
    await node.restart();
    await node.del({ startNs: early });
    assert.deepEqual(node.held, given);
    const [{ netns, netnsSeen } = assert.fail()] = node.parts.attachments.attached();
    assert.deepEqual([netns, netnsSeen], ["/run/netns/next", await node.host.identity("/run/netns/next")]);
    await node.del();
    assert.deepEqual(node.held, []);
  });

  it("ends an ADD that waits, and what the ADD would have given", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.claimSource.finding = promise;
    const adding = node.call("ADD", { args: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=p" });
    while (node.claimSource.asked.length === 0) await new Promise(setImmediate);
    await node.del();
    assert.equal(errorOf(await adding).code, 11);
    resolve();
    await new Promise(setImmediate);
    assert.deepEqual(node.held, []);
  });

  it("that cannot be journalled is left to the client's spool", async () => {
    const given = await node.add();
    node.diskFault = FULL_DISK;
    const answer = await node.call("DEL");
    assert.equal(answer.exitStatus, 75);
    assert.ok(!/not found|no such file/i.test(answer.stdout), "runtimes take these words for success");
    assert.deepEqual(node.held, given);
    node.diskFault = undefined;
    await node.del();
    assert.deepEqual(node.held, []);
  });
});
