// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { VERSIONS } from "../../cni/versions.ts";
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

describe("any call", () => {
  setUp();

  it("without a command says what the plugin is, and succeeds", async () => {
    const answer = await node.call("");
    assert.deepEqual([answer.exitStatus, answer.stdout], [0, ""]);
    assert.ok(answer.stderr.includes("CNI protocol versions supported: 0.1.0, 0.2.0,"), answer.stderr);
  });

  it("is judged by its environment, then stdin, then command, then version", async () => {
    assert.equal(
      errorOf(await node.call("ADD", { cid: "-", stdin: "{" })).msg,
      "invalid characters in containerID",
    );
    assert.equal(errorOf(await node.call("add", { stdin: "{" })).code, 6);
    assert.deepEqual(errorOf(await node.call("add", { conf: { cniVersion: "9.9.9" } })), {
      cniVersion: "1.1.0",
      code: 4,
      msg: "unknown CNI_COMMAND: add",
    });
    assert.equal(errorOf(await node.call("ADD", { conf: { cniVersion: "9.9.9", ipam: "x" } })).code, 1);
  });

  it("that fails is answered in the version of the configuration", async () => {
    for (const version of VERSIONS) {
      const answer = await node.call("ADD", { ipam: {}, conf: { cniVersion: version } });
      assert.equal(JSON.parse(answer.stdout).cniVersion, version);
      assert.equal(answer.stderr, "");
    }
  });

  it("for VERSION needs nothing else", async () => {
    const answer = await node.call("VERSION", { cid: "", ifname: "", stdin: "not json" });
    assert.deepEqual(JSON.parse(answer.stdout).supportedVersions, [...VERSIONS]);
  });
});

describe("STATUS", () => {
  setUp();

  const status = () => node.call("STATUS", { cid: "", ifname: "", netns: "" });

  it("is well, also when a range is exhausted", async () => {
    const ipam = { subnet: "10.1.2.0/30" };
    await node.add({ cid: "a", ipam });
    assert.equal((await node.call("ADD", { cid: "b", ipam })).exitStatus, 1);
    assert.deepEqual(await status(), { exitStatus: 0, stdout: "", stderr: "" });
  });

  it("says of a configuration what every ADD would say of it", async () => {
    for (const [ipam, msg] of [
      [{ subnet: "nonsense" }, undefined],
      [{ etcdConfig: {} }, "ipam.etcdConfig names no etcdURL; write for example https://10.0.0.1:2379"],
      [
        { subnet: "10.0.0.0/24", etcdConfig: { etcdURL: "http://127.0.0.1:2379" } },
        "ipam.etcdConfig: the agent of this host serves no networks in etcd; start it with: berthctl up --etcd URL (in a cluster set agent.etcdSecret of the chart), or take etcdConfig out",
      ],
      [{ resolvConf: "/nonexistent/resolv.conf" }, undefined],
    ] as const) {
      const refused = errorOf(await node.call("ADD", { cid: "c", ipam }));
      const reported = errorOf(await node.call("STATUS", { cid: "", ifname: "", netns: "", ipam }));
      assert.deepEqual([reported.code, reported.msg], [refused.code, msg ?? refused.msg]);
    }
  });

  it("says 51 while the journal cannot be written, and finds out by itself that it can again", async () => {
    node.diskFault = FULL_DISK;
    await node.call("ADD");
    assert.deepEqual(errorOf(await status()), {
      cniVersion: "1.1.0",
      code: 51,
      msg: "the journal cannot be written: the disk is full",
    });
    node.diskFault = undefined;
    assert.equal((await status()).exitStatus, 0);
  });
});
