// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { Caller } from "../cni/caller.ts";
import { AgentPod, messagesOf } from "../image/agent-pod.ts";
import { Archive } from "../image/archive.ts";
import { whyNoContainer } from "../image/container.ts";
import { Sandboxes } from "../image/sandboxes.ts";
import { eventually } from "../support/eventually.ts";
import { whyNoNetwork } from "../support/netns.ts";
import { sandbox } from "./agent-cluster.ts";
import { AgentSuite } from "./agent-suite.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane } from "./shared-plane.ts";

const NODE = "node-a";
const why = (await whyNoContainer()) ?? (await whyNoNetwork());

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const suite = new AgentSuite(openControlPlane);

  describe("the agent's pod, made from the image", { skip: why ?? false }, () => {
    let image: Archive;
    let sandboxes: Sandboxes;
    let pod: AgentPod;
    let runtime: Caller;

    before(async () => {
      image = await Archive.make();
    });
    after(() => image?.close());
    beforeEach(async () => {
      const { plane } = suite;
      const token = plane.kubeConfig().token;
      sandboxes = new Sandboxes();
      pod = new AgentPod(image, { port: Number(new URL(plane.url).port), token, ca: plane.ca });
      runtime = new Caller(pod.socket);
      runtime.ipam = {};
      await sandboxes.make();
    });
    afterEach(async () => {
      runtime.close();
      await pod.remove();
      await sandboxes.close();
    });

    it("gives the node its conflist once it serves, follows the ConfigMap, and leaves it there", async () => {
      const agent = await pod.start();
      const until = (text: string) =>
        eventually(
          `the conflist is ${text}`,
          () => (existsSync(pod.conflist) && readFileSync(pod.conflist, "utf8") === text) || undefined,
          30_000,
        );
      await until(pod.configure("net"));
      assert.equal(statSync(pod.conflist).mode & 0o777, 0o600);
      await runtime.silently("STATUS");
      const changed = pod.configure("other");
      await until(changed);
      assert.equal((await agent.stop()).rc, 0);
      assert.equal(readFileSync(pod.conflist, "utf8"), changed);
      assert.deepEqual(messagesOf(agent, "error"), []);
    });

    it("writes the node's own ranges where the conflist says so, once the node has some, and gives from all of them", async () => {
      const api = suite.plane.connect();
      const at = (path: string, method: "POST" | "DELETE", body?: unknown) =>
        api.call({ method, path: `/api/v1/nodes${path}`, ...(body === undefined ? {} : { body }) });
      await at("", "POST", { apiVersion: "v1", kind: "Node", metadata: { name: NODE } });
      try {
        pod.configure("net", { ranges: [[{ subnet: "usePodCidr" }]] });
        const agent = await pod.start();
        const waits = () =>
          agent.log.includes("the conflist says usePodCidr, and node node-a has no podCIDRs");
        await eventually("the agent waits for the range", () => waits() || undefined, 30_000);
        assert.ok(!existsSync(pod.conflist));
        const spec = { podCIDR: "10.244.1.0/30", podCIDRs: ["10.244.1.0/30"] };
        const annotations = { "berth.dev/pod-cidrs": "10.250.7.0/30" };
        await at("/node-a", "DELETE");
        await at("", "POST", { apiVersion: "v1", kind: "Node", metadata: { name: NODE, annotations }, spec });
        await eventually("the conflist is there", () => existsSync(pod.conflist) || undefined, 30_000);
        const [{ ipam }] = JSON.parse(readFileSync(pod.conflist, "utf8")).plugins;
        assert.deepEqual(ipam.ranges, [[{ subnet: "10.244.1.0/30" }, { subnet: "10.250.7.0/30" }]]);
        runtime.ipam = ipam;
        const given = [await runtime.add({ cid: "c1" }), await runtime.add({ cid: "c2" })];
        assert.deepEqual(given, [["10.244.1.2/30"], ["10.250.7.2/30"]]);
      } finally {
        await at("/node-a", "DELETE");
        api.close();
      }
    });

    it("lets no pod have an address while a sandbox of its node that it can see is up with it", async () => {
      await pod.start();
      const [one, other] = [await sandboxes.make(), await sandboxes.make()];
      const first = await suite.cluster.boundPod("forced-0", NODE);
      assert.deepEqual(await runtime.add(sandbox(first, "c1", { netns: one })), [first.cidr]);
      await suite.cluster.forget(first);
      const second = await suite.cluster.pod("forced-0", NODE, { "berth.dev/claim": "forced-0" });
      assert.ok(!isRefusal(await suite.cluster.bind(second, NODE)));
      const asked = sandbox(second, "c2", { netns: other });
      assert.match(await runtime.refused("ADD", asked), /container c1 of another pod still uses it/);
      await runtime.del(sandbox(first, "c1", { netns: one }));
      assert.deepEqual(await runtime.add(asked), [first.cidr]);
    });
  });
}
