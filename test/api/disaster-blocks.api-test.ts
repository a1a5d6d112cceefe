// SPDX-License-Identifier: Apache-2.0
// etcd is put back to before nodes had blocks, whose pods live on: docs/operations.md, "Disaster".
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box, SHOP } from "./block-cluster.ts";
import { CONFIG_MAPS } from "./cluster-resources.ts";
import { EtcdSnapshot } from "./etcd-snapshot.ts";
import { startControlPlane } from "./harness.ts";
import { SHARED_OPTIONS } from "./shared-plane.ts";

/** Watches that were cut off wait up to 30 s before they look again. */
const RELIST_MS = 90_000;
/** More than is written between the API server's start and the last watch that goes on. */
const WRITES = 500;
const STRAYS = /^berth_agent_stray_sandboxes (\d+)$/m;

/** Whoever has seen a block has seen a later revision than any that the API server comes to until all have looked again. */
async function age(api: Connection): Promise<void> {
  const one = { metadata: { generateName: "age-" } };
  const path = collectionPath(CONFIG_MAPS, SHOP);
  for (let n = 0; n < WRITES; n += 20)
    await Promise.all(Array.from({ length: 20 }, () => api.call({ method: "POST", path, body: one })));
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("etcd restored from before nodes were given blocks", () => {
    let cluster: BlockCluster;
    let lost: readonly Box[];
    before(async () => {
      const plane = await startControlPlane(SHARED_OPTIONS);
      cluster = await BlockCluster.open(1, plane);
      const etcd = new EtcdSnapshot(plane);
      await cluster.makePool("plain", {
        ranges: [{ cidr: "10.27.0.0/28" }],
        ...{ blockSize: { ipv4: 29, ahead: 0 }, default: true, cooldown: "1s" },
      });
      await etcd.take();
      await age(cluster.api);
      lost = [await first("n1"), ...(await cluster.upAll(cluster.node("n1"), 2))];
      await etcd.restore();
    });
    after(() => cluster?.close());

    /** The agent may not have heard of the pool again. */
    const first = async (name: string) => {
      const pod = await cluster.pod(cluster.node(name));
      const attempt = async () => {
        const box = await cluster.tryUp(pod);
        return typeof box === "string" ? undefined : box;
      };
      return await eventually(`${name} serves a pod`, attempt, RELIST_MS);
    };

    const strays = (name: string, wanted: number) =>
      eventually(
        `${name} has ${wanted} stray sandboxes`,
        async () => {
          const text = await (await cluster.node(name).fetch("/metrics")).text();
          return STRAYS.exec(text)?.[1] === String(wanted) || undefined;
        },
        RELIST_MS,
      );

    it("an agent tells of the sandboxes whose addresses it has from no block any more", async () => {
      await strays("n1", lost.length);
      const told = () => {
        const lines = cluster.node("n1").log.split("\n");
        const own = lines.filter((line) => line.includes("not bound to its pod"));
        return own.length === lost.length ? own : undefined;
      };
      const lines = await eventually("it tells of each", told, RELIST_MS);
      const addresses = lines.map((line) => (JSON.parse(line) as { address: string }).address);
      assert.deepEqual(
        addresses.toSorted(),
        lost.flatMap((box) => box.addresses.map((one) => one.split("/")[0])).toSorted(),
      );
    });

    it("once they are removed, other nodes may have the addresses", async () => {
      for (const box of lost) await cluster.end(box);
      await strays("n1", 0);
      await first("n2");
      await cluster.upAll(cluster.node("n2"), 11);
      await strays("n2", 0);
      assert.equal(new Set(cluster.addresses()).size, 12);
    });
  });
}
