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

describe("GC", () => {
  setUp();

  const gc = (value: unknown, asked: object = {}) =>
    node.call("GC", {
      cid: "",
      ifname: "",
      netns: "",
      conf: { "cni.dev/valid-attachments": value },
      ...asked,
    });
  const fine = { exitStatus: 0, stdout: "", stderr: "" };

  it("frees what is not listed, in this network only", async () => {
    await node.add({ cid: "a" });
    await node.add({ cid: "b" });
    await node.add({ cid: "a", ifname: "eth1" });
    await node.add({ cid: "a", conf: { name: "other", ipam: { subnet: "10.9.9.0/24" } } });
    assert.deepEqual(
      await gc([
        { containerID: "a", ifname: "eth0" },
        { containerID: "unknown", ifname: "eth0" },
      ]),
      fine,
    );
    assert.deepEqual(node.held, ["10.1.2.2", "10.9.9.2"]);
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(await gc(null), fine);
    assert.deepEqual(node.held, ["10.9.9.2"]);
    await node.restart();
    assert.deepEqual(node.held, ["10.9.9.2"]);
  });

  it("frees nothing when the list is absent or malformed", async () => {
    const given = await node.add();
    const absent = await node.call("GC");
    assert.deepEqual([absent.exitStatus, absent.stdout], [0, ""]);
    assert.ok(absent.stderr.includes("frees nothing"));
    for (const value of ["x", [{}], [{ containerID: 5 }], [{ containerID: "c9" }]]) {
      assert.ok([6, 7].includes(errorOf(await gc(value)).code), JSON.stringify(value));
    }
    assert.deepEqual(node.held, given);
  });

  it("keeps a sandbox that can be seen, or whose folder cannot", async () => {
    node.host.present.add("/run/netns/a").add("/run/netns/b").add("/run/netns/c");
    for (const cid of ["a", "b", "c", "never-seen"]) await node.add({ cid });
    node.host.present.delete("/run/netns/b");
    node.host.unknown.add("/run/netns/c");
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(node.held, ["10.1.2.2", "10.1.2.4"]);
  });

  it("keeps a sandbox that can be seen now, and could not at its ADD", async () => {
    await node.add({ cid: "a" });
    await node.add({ cid: "b" });
    node.host.present.add("/run/netns/a");
    node.host.unknown.add("/run/netns/b");
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(node.held, ["10.1.2.2"]);
  });

  it("frees a sandbox when another namespace is at its path", async () => {
    node.host.present.add("/run/netns/web");
    await node.add({ cid: "a", netns: "/run/netns/web" });
    node.host.renewals.set("/run/netns/web", 1);
    await node.add({ cid: "b", netns: "/run/netns/web" });
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(node.held, ["10.1.2.3"]);
  });

  it("frees a sandbox whose process is gone, if it is known that no other is in its namespace", async () => {
    const paths = { a: "/proc/7/ns/net", b: "/proc/8/ns/net", c: "/proc/9/ns/net" };
    for (const [cid, netns] of Object.entries(paths)) {
      node.host.present.add(netns);
      await node.add({ cid, netns });
      node.host.unknown.add(netns);
    }
    node.host.ended.add(paths.a).add(paths.b);
    assert.deepEqual(await gc([]), fine);
    assert.equal(node.held.length, 3, "it is not known who is in them");
    node.host.inUse = new Set([(await node.host.identity(paths.b)) ?? assert.fail()]);
    assert.deepEqual(await gc([{ containerID: "a", ifname: "eth0" }]), fine);
    assert.equal(node.held.length, 3, "the runtime has it");
    assert.deepEqual(await gc([]), fine);
    assert.deepEqual(node.held, ["10.1.2.3", "10.1.2.4"], "b has a process in it, c has its own");
  });

  it("keeps what was attached after the list was made", async () => {
    const startNs = node.nextNs();
    const given = await node.add();
    assert.deepEqual(await gc([], { startNs }), fine);
    assert.deepEqual(node.held, given);
  });

  it("reports what it could not free", async () => {
    await node.add({ cid: "a" });
    await node.add({ cid: "b" });
    node.diskFault = FULL_DISK;
    const error = errorOf(await gc([]));
    assert.deepEqual(
      [error.code, error.msg],
      [5, "2 of 2 stale attachments were not freed: the disk is full"],
    );
    assert.equal(node.held.length, 2);
  });
});
