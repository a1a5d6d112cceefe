// SPDX-License-Identifier: Apache-2.0
// A life of pools with blocks, with the chart's accounts, roles and policies, judged by the API server's own audit log.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AuditLog, BLOCK_RIGHTS } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster } from "./block-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a life of blocks with the accounts of the chart", () => {
    const audit = new AuditLog();
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open(audit.flags);
    });
    after(async () => {
      await cluster?.close();
      audit.remove();
    });

    it("blocks are granted, used on two nodes, taken back, and their pool is emptied", async () => {
      await cluster.makePool("life", {
        ranges: [{ cidr: "10.29.0.0/28" }],
        ...{ blockSize: { ipv4: 30 }, default: true, cooldown: "1s" },
      });
      for (const name of ["n1", "n2"]) await cluster.upAll(cluster.node(name), 3);
      await cluster.clear();
    });

    it("nothing that webhook or agents asked for was forbidden to them", async () => {
      for (const node of cluster.nodes.values()) await node.stop();
      for (const { process } of cluster.replicas.all) await process.stop("SIGTERM");
      const forbidden = audit
        .requests()
        .filter(({ responseStatus }) => [401, 403].includes(responseStatus?.code ?? 0));
      assert.deepEqual(
        forbidden.map(({ user, requestURI }) => `${user.username} ${requestURI}`),
        [],
      );
    });

    it("and of what they may do with blocks, nothing was of no use", () => {
      for (const account of ["berth-webhook", "berth-agent"] as const) {
        const used = audit.usedBy(account);
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
