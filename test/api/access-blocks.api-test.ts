// SPDX-License-Identifier: Apache-2.0
// A life of pools with blocks, with the chart's accounts, roles and policies, judged by the API server's own audit log.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BLOCK_RIGHTS } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster } from "./block-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a life of blocks with the accounts of the chart", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());

    it("blocks are granted, used on two nodes, taken back, and their pool is emptied", async () => {
      await cluster.makePool("life", {
        ranges: [{ cidr: "10.29.0.0/28" }],
        namespaceSelector: {}, // without one no agent asks for namespaces
        ...{ blockSize: { ipv4: 30 }, default: true, cooldown: "1s" },
      });
      for (const name of ["n1", "n2"]) await cluster.upAll(cluster.node(name), 3);
      await cluster.clear();
    });

    it("a pod that gets none is told how many blocks nodes have, and of no node, block or pod of others", async () => {
      await cluster.makePool("tiny", {
        ranges: [{ cidr: "10.31.0.0/24", from: "10.31.0.8", to: "10.31.0.9" }],
        ...{ blockSize: { ipv4: 32 }, default: true, cooldown: "1s" },
      });
      await cluster.upAll(cluster.node("n1"), 2);
      const words = await cluster.tryUp(await cluster.pod(cluster.node("n2")));
      assert.ok(typeof words === "string", "there are two addresses for three pods");
      assert.match(words, /^11 .*no IPv4 block of pool "tiny"/);
      assert.doesNotMatch(words, /\bn1\b|10\.31\.0\.[89]|plain-/);
      await cluster.clear();
    });

    it("nothing that webhook or agents asked for was forbidden to them", async () => {
      for (const node of cluster.nodes.values()) await node.stop();
      for (const { process } of cluster.replicas.all) await process.stop("SIGTERM");
      const forbidden = cluster.audit
        .requests()
        .filter(({ responseStatus }) => [401, 403].includes(responseStatus?.code ?? 0));
      assert.deepEqual(
        forbidden.map(({ user, requestURI }) => `${user.username} ${requestURI}`),
        [],
      );
    });

    it("and of what they may do with blocks, nothing was of no use", () => {
      for (const account of ["berth-webhook", "berth-agent"] as const) {
        const used = cluster.audit.usedBy(account);
        const superfluous = BLOCK_RIGHTS[account].filter((right) => !used.has(right));
        console.log(
          account,
          [...used]
            .filter((right) => /ipblocks|nodes|namespaces/.test(right))
            .sort()
            .join("; "),
        );
        assert.deepEqual(superfluous, [], account);
      }
    });
  });
}
