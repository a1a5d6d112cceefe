// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, served out of blocks, while an agent, a node or the API server is away, and after it.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { NODES } from "../../kube/api/resource.ts";
import type { Said } from "../cni/caller.ts";
import { eventually } from "../support/eventually.ts";
import { checkOutBaseline } from "../versions/baseline.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box, type PlainPod, SHOP } from "./block-cluster.ts";
import { change, forceDelete, makeNode } from "./replica-objects.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pods that ask for nothing, on nodes with blocks", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());
    afterEach(() => cluster.clear());

    async function notesOf(reason: string): Promise<readonly string[]> {
      const { body } = await cluster.api.call({ method: "GET", path: "/apis/events.k8s.io/v1/events" });
      const { items } = body as {
        readonly items: readonly { readonly reason: string; readonly note: string }[];
      };
      return items.flatMap((one) => (one.reason === reason ? [one.note] : []));
    }

    /** Starts these pods and then others that nobody counts: the controller may have given blocks for all that it counts. */
    async function untilRefused(node: AgentNode, counted: PlainPod[], over: Said): Promise<[string, Box[]]> {
      const unknown: Box[] = [];
      for (let n = 0; n < 200; n++) {
        const pod = { namespace: SHOP, name: `unknown-${n}`, uid: `unknown-${n}`, node };
        const said = await cluster.tryUp(counted.shift() ?? pod, over);
        if (typeof said === "string") return [said, unknown];
        if (said.pod === pod) unknown.push(said);
      }
      return assert.fail("none was refused");
    }

    it("end while their agent is away, and their blocks come back", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("away", {
        ranges: [{ cidr: "10.23.0.0/29" }],
        blockSize: { ipv4: 32 },
        default: true,
        cooldown: "1s",
      });
      const boxes = await cluster.upAll(n1, 6);
      await cluster.untilOwned({ n1: 6 });
      await n1.stop("SIGKILL");
      for (const box of boxes) await cluster.down(box);
      await n1.start();
      await cluster.upAll(cluster.node("n2"), 6);
      await cluster.untilOwned({ n2: 6 });
    });

    it("are served while the blocks last without an API server, by an agent that starts then, too", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("alone", {
        ranges: [{ cidr: "10.24.0.0/24" }],
        blockSize: { ipv4: 29 },
        default: true,
        cooldown: "0s",
      });
      await cluster.untilOwned({ n1: 2, n2: 2 });
      const pods = await Promise.all(Array.from({ length: 16 }, () => cluster.pod(n1)));
      const first = await cluster.up(pods.pop() ?? assert.fail());
      await cluster.plane.apiServer.stop("SIGKILL");
      const up = async (pod: PlainPod) => await cluster.tryUp(pod);
      for (const pod of pods.splice(0, 5)) assert.notEqual(typeof (await up(pod)), "string");
      await n1.stop("SIGKILL");
      await n1.serve();
      const annotated = { conf: { runtimeConfig: { "io.kubernetes.cri.pod-annotations": {} } } };
      const [words, unknown] = await untilRefused(n1, pods.splice(0, 7), annotated);
      console.log(`${unknown.length} that nobody counts, and then: ${words}`);
      assert.match(words, /^11 /);
      for (const box of unknown) await cluster.end(box);
      await cluster.plane.start();
      await n1.untilReady();
      await cluster.up(pods.pop() ?? assert.fail());
      assert.ok(first);
    });

    it("of a node whose Node object is made again go on from the same blocks", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("again", {
        ranges: [{ cidr: "10.27.0.0/24" }],
        ...{ blockSize: { ipv4: 29 }, default: true, cooldown: "1s" },
      });
      await cluster.upAll(n1, 4);
      const blocks = async () =>
        (await cluster.blocks()).flatMap(({ uid, record }) => (record.node === "n1" ? [uid] : [])).sort();
      // one that the agent does not know to be its own waits until the Node that it was made for is known to be gone
      await eventually(
        "each is the agent's",
        async () => (await cluster.blocks()).every(({ record }) => record.status !== undefined) || undefined,
      );
      const before = await blocks();
      await forceDelete(cluster.api, NODES, { name: "n1" });
      await makeNode(cluster.api, "n1");
      await cluster.upAll(n1, 4);
      await n1.stop("SIGKILL");
      await n1.start();
      await cluster.upAll(n1, 2);
      const after = new Set(await blocks());
      assert.ok(
        before.every((uid) => after.has(uid)),
        "none of them was taken",
      );
    });

    it("of a node whose agent is of the version before are not served there, and keep what they have through upgrade and rollback", async (t) => {
      const baseline = await checkOutBaseline();
      if ("why" in baseline) return t.skip(baseline.why);
      const n1 = cluster.node("n1");
      const old = join(baseline.root, "ipam-plugin/agent/main.ts");
      const as = async (main: string | undefined) => {
        await n1.stop();
        n1.main = main;
        await n1.start();
      };
      try {
        await cluster.makePool("versions", {
          ranges: [{ cidr: "10.28.0.0/24" }],
          ...{ blockSize: { ipv4: 29 }, default: true, cooldown: "1s" },
        });
        await cluster.untilOwned({ n1: 2, n2: 2 });
        await as(old);
        assert.match(String(await cluster.tryUp(await cluster.pod(n1))), /no IP ranges specified/);
        await cluster.upAll(cluster.node("n2"), 2);
        await as(undefined);
        const [kept, gone] = await cluster.upAll(n1, 2);
        assert.ok(kept && gone);
        await as(old);
        assert.deepEqual(await n1.runtime.add(kept.said), kept.addresses, "the same answer again");
        await cluster.end(gone);
        await n1.runtime.silently("STATUS");
        await as(undefined);
        assert.deepEqual(await n1.runtime.add(kept.said), kept.addresses);
        await cluster.upAll(n1, 3);
      } finally {
        n1.main = undefined;
        await baseline.remove();
      }
    });

    it("of a node whose power was cut, keep their addresses until it is fenced", async () => {
      const n3 = await cluster.addNode("n3");
      await cluster.makePool("power", {
        ranges: [{ cidr: "10.26.0.0/29" }],
        blockSize: { ipv4: 32 },
        default: true,
        cooldown: "1s",
      });
      await cluster.upAll(n3, 6);
      await cluster.untilOwned({ n3: 6 });
      await n3.stop("SIGKILL");
      cluster.lose(n3);
      const late = await cluster.pod(cluster.node("n1"));
      assert.match(String(await cluster.tryUp(late)), /^11 /);
      assert.deepEqual(await cluster.owned(), { n3: 6 }, "nobody has said that it is off");
      await forceDelete(cluster.api, NODES, { name: "n3" });
      await eventually(
        "an event of the pool says so",
        async () =>
          (await notesOf("NodeGone")).some((note) =>
            /^node n3 gone: 6 blocks \(.*\) given back 45s after that, and free after the pool's cooldown \(1s\)$/.test(
              note,
            ),
          ) || undefined,
      );
      await makeNode(cluster.api, "n3");
      const taint = { key: "node.kubernetes.io/out-of-service", effect: "NoExecute" };
      await change(cluster.api, NODES, { name: "n3" }, { spec: { taints: [taint] } });
      await cluster.up(late);
      await cluster.removeNode("n3");
    });
  });
}
