// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NodeBench } from "../../ipam-plugin/agent/testing/node-bench.ts";

describe("G20: GC of a full node", () => {
  it("frees 100 of 1000 attachments and keeps 900", async () => {
    const node = await NodeBench.open();
    try {
      node.ipam = { subnet: "10.1.0.0/16" };
      const names = Array.from({ length: 1000 }, (_, i) => `c${i}`);
      const given = await Promise.all(names.map((cid) => node.add({ cid })));
      assert.equal(new Set(given.flat()).size, 1000);
      const valid = names.slice(100).map((containerID) => ({ containerID, ifname: "eth0" }));
      const before = node.commits;
      const answer = await node.call("GC", {
        cid: "",
        ifname: "",
        conf: { "cni.dev/valid-attachments": valid },
      });
      assert.deepEqual(answer, { exitStatus: 0, stdout: "", stderr: "" });
      assert.deepEqual(node.held, given.slice(100).flat().sort());
      assert.ok(node.commits - before <= 2, `${node.commits - before} commits: the releases share them`);
    } finally {
      await node.close();
    }
  });
});
