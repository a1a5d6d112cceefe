// SPDX-License-Identifier: Apache-2.0
// Pods with addresses on several interfaces (ADR 0027): a real API server with the chart's policies, the webhook with its controllers,
// agents, and one ADD for each interface, as a meta plugin makes them.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Store } from "../../allocator/store/store.ts";
import { CLAIMS, PODS, POOLS } from "../../kube/api/resource.ts";
import { argsOf, type Said } from "../cni/caller.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { addr } from "../support/fixtures.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openStore } from "./open-store.ts";
import { forceDelete, make, makePod, makeStatefulSet } from "./replica-objects.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

const NODES = ["node-a", "node-b"] as const;
const IPS = "berth.dev/ips";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const POOL_RANGES = {
  db: [{ cidr: "10.20.0.0/24" }, { cidr: "fd00:20::/64" }],
  lan: [{ cidr: "10.30.0.0/24" }, { cidr: "fd00:30::/64" }],
};
const namespace = "shop";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pods with several interfaces, on a real API server", () => {
    let cluster: WebhookCluster;
    let store: Store;

    before(async () => {
      await buildPlugin();
      cluster = await WebhookCluster.open({
        namespaces: [namespace],
        policies: true,
        prepare: async (admin) => {
          for (const [name, ranges] of Object.entries(POOL_RANGES))
            await make(admin, POOLS, { name }, { spec: { ranges, cooldown: "0s" } });
        },
      });
      store = openStore(cluster.admin);
      for (const name of NODES) await cluster.addNode(name);
    });
    after(async () => {
      await store?.close();
      await cluster?.close();
    });

    const claimOf = async (name: string): Promise<Claim | undefined> =>
      (await store.get("claim", `${namespace}/${name}`))?.record;
    const isReserved = async (address: string) => {
      const found = (await store.get("reservation", addr(address)))?.record;
      return found !== undefined && found.releasedAt === undefined;
    };
    const free = (...addresses: readonly string[]) =>
      eventually(`${addresses.join()} are free`, async () => {
        const held = await Promise.all(addresses.map(isReserved));
        return held.includes(true) ? undefined : true;
      });
    const stateOf = async (name: string) => {
      const attachment = (await claimOf(name))?.status.attachment;
      return attachment === undefined
        ? "none"
        : `${attachment.containerID} ${attachment.detached ? "ended" : "up"}`;
    };
    const untilState = (name: string, wanted: string) =>
      eventually(`claim ${name} says ${wanted}`, async () =>
        (await stateOf(name)) === wanted ? true : undefined,
      );

    interface Running {
      readonly node: AgentNode;
      readonly on: (ifname: string) => Said;
    }
    const sandboxOf = (at: string, name: string, uid: string, cid: string): Running => {
      const args = argsOf({ namespace, name, uid });
      return { node: cluster.node(at), on: (ifname) => ({ cid, args, ifname }) };
    };
    /** What each interface is given. */
    const given = async ({ node, on }: Running, ...names: readonly string[]) => {
      const answers: string[] = [];
      for (const name of names) answers.push((await node.runtime.add(on(name))).join());
      return answers;
    };
    const ask = async (name: string, node: string, ips: string) =>
      await makePod(cluster.admin, { namespace, name }, { node, annotations: { [IPS]: ips } });

    it("have the addresses that they name on each, from memory, and the claim lasts as long as one of them", async () => {
      const pod = await ask("multi", "node-a", "10.20.0.51/fd00:20::51,10.30.0.51/fd00:30::51@net1");
      assert.equal(
        pod.metadata.annotations?.["berth.dev/addresses"],
        "10.20.0.51@eth0,10.30.0.51@net1,fd00:20::51@eth0,fd00:30::51@net1",
      );
      const running = sandboxOf("node-a", "multi", pod.metadata.uid, "c1");
      assert.deepEqual(await given(running, "eth0", "net1", "net1"), [
        "10.20.0.51/24,fd00:20::51/64",
        "10.30.0.51/24,fd00:30::51/64",
        "10.30.0.51/24,fd00:30::51/64",
      ]);
      assert.match(
        await running.node.runtime.refused("ADD", running.on("net2")),
        /^7 claim shop\/multi serves eth0 with .*, and no address was asked for net2/,
      );
      await untilState("multi", "c1 up");
      await forceDelete(cluster.admin, PODS, { namespace, name: "multi" });
      await running.node.runtime.del(running.on("eth0"));
      // told, if it were, within 200 ms
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      assert.equal(await stateOf("multi"), "c1 up", "net1 has its addresses yet");
      assert.ok(await isReserved("10.20.0.51"));
      await running.node.runtime.del(running.on("net1"));
      await free("10.20.0.51", "fd00:20::51", "10.30.0.51", "fd00:30::51");
    });

    it("are refused whole when one address is taken", async () => {
      const holder = await ask("holder", "node-a", "10.30.0.60");
      assert.ok(holder);
      await assert.rejects(
        ask("imitator", "node-a", "10.20.0.61,10.30.0.60@net1"),
        /10\.30\.0\.60 in pool "lan" is held by/,
      );
      assert.equal(await claimOf("imitator"), undefined);
      await free("10.20.0.61");
      await forceDelete(cluster.admin, PODS, { namespace, name: "holder" });
    });

    it("of a StatefulSet are reserved on each interface in advance, and move to another node with all of them", async () => {
      const annotations = { [IPS]: "10.20.0.70-10.20.0.72,10.30.0.70-10.30.0.72@net1" };
      const set = await makeStatefulSet(
        cluster.admin,
        { namespace, name: "mysql" },
        { replicas: 3, annotations },
      );
      await eventually("all ordinals are reserved", async () =>
        (await Promise.all(["10.20.0.72", "10.30.0.72"].map(isReserved))).every(Boolean) ? true : undefined,
      );
      const owner = {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        name: "mysql",
        uid: set.metadata.uid,
        controller: true,
      };
      const member = async (node: string) =>
        await make(
          cluster.admin,
          PODS,
          { namespace, name: "mysql-1" },
          {
            metadata: { annotations, ownerReferences: [owner] },
            spec: { nodeName: node, containers: [{ name: "main", image: "registry.example/app:1" }] },
          },
        );
      const first = sandboxOf("node-a", "mysql-1", (await member("node-a")).metadata.uid, "m1");
      assert.deepEqual(await given(first, "eth0", "net1"), ["10.20.0.71/24", "10.30.0.71/24"]);
      await untilState("mysql-1", "m1 up");
      await forceDelete(cluster.admin, PODS, { namespace, name: "mysql-1" });
      const second = sandboxOf("node-b", "mysql-1", (await member("node-b")).metadata.uid, "m2");
      // its DEL of one interface is not the sandbox's end: the pod on the other node waits
      await first.node.runtime.del(first.on("net1"));
      assert.match(
        await second.node.runtime.refused("ADD", second.on("eth0")),
        /^11 claim shop\/mysql-1 is not bound/,
      );
      await first.node.runtime.del(first.on("eth0"));
      await eventually("it is bound to the other node", async () =>
        (await claimOf("mysql-1"))?.binding?.node === "node-b" ? true : undefined,
      );
      assert.deepEqual(await given(second, "eth0", "net1"), ["10.20.0.71/24", "10.30.0.71/24"]);
      await untilState("mysql-1", "m2 up");
      for (const name of ["net1", "eth0"]) await second.node.runtime.del(second.on(name));
      await forceDelete(cluster.admin, PODS, { namespace, name: "mysql-1" });
    });

    it("are made again by an agent that was killed between two interfaces", async () => {
      const pod = await ask("killed", "node-b", "10.20.0.80,10.30.0.80@net1");
      const running = sandboxOf("node-b", "killed", pod.metadata.uid, "k1");
      assert.deepEqual(await given(running, "eth0"), ["10.20.0.80/24"]);
      await running.node.stop("SIGKILL");
      await running.node.start();
      assert.deepEqual(await given(running, "net1", "eth0"), ["10.30.0.80/24", "10.20.0.80/24"]);
      await untilState("killed", "k1 up");
      for (const name of ["eth0", "net1"]) await running.node.runtime.del(running.on(name));
      await forceDelete(cluster.admin, PODS, { namespace, name: "killed" });
      await free("10.20.0.80", "10.30.0.80");
    });

    const asking = async (name: string, annotations: Record<string, string>) =>
      await makePod(cluster.admin, { namespace, name }, { node: "node-a", annotations });

    it("have what Multus' networks name, several of one family too, and the ADD that Multus makes agrees", async () => {
      const networks = (ips: readonly string[]) => JSON.stringify([{ name: "lan", ips }]);
      const asked = networks(["10.30.0.91/24", "10.30.0.92/24"]);
      const pod = await asking("multus", { [IPS]: "10.20.0.91", [NETWORKS]: asked });
      assert.equal(
        pod.metadata.annotations?.["berth.dev/addresses"],
        "10.20.0.91@eth0,10.30.0.91@net1,10.30.0.92@net1",
      );
      const running = sandboxOf("node-a", "multus", pod.metadata.uid, "x1");
      assert.deepEqual(await given(running, "net1", "eth0"), [
        "10.30.0.91/24,10.30.0.92/24",
        "10.20.0.91/24",
      ]);
      const { args } = running.on("net1");
      for (const [ip, words] of [
        ["10.30.0.91", undefined],
        ["10.30.0.99", /asks for 10\.30\.0\.99/],
      ] as const) {
        const said = { ...running.on("net1"), args: `${args};IP=${ip}` };
        if (words === undefined) assert.ok(await running.node.runtime.add(said));
        else assert.match(await running.node.runtime.refused("ADD", said), words);
      }
      await assert.rejects(
        asking("imitator", { [IPS]: "10.20.0.93", [NETWORKS]: networks(["10.30.0.93", "10.30.0.92"]) }),
        /10\.30\.0\.92 in pool "lan" is held by/,
      );
      await assert.rejects(
        asking("imitator", { [IPS]: "10.30.0.94@net1", [NETWORKS]: networks(["10.30.0.93"]) }),
        /annotation k8s\.v1\.cni\.cncf\.io\/networks: it disagrees with berth\.dev\/ips/,
      );
      await free("10.20.0.93", "10.30.0.93");
      for (const name of ["eth0", "net1"]) await running.node.runtime.del(running.on(name));
      await forceDelete(cluster.admin, PODS, { namespace, name: "multus" });
      await free("10.20.0.91", "10.30.0.91", "10.30.0.92");
    });

    it("have an address of each interface's pools, the same again if they are sticky, or another than the one that is taken", async () => {
      const annotations = { "berth.dev/pools": "db/IPv4,lan/IPv4@net1", "berth.dev/sticky": "true" };
      const reported: string[] = [];
      for (const cid of ["p1", "p2"]) {
        const pod = await asking("pools", annotations);
        reported.push(pod.metadata.annotations?.["berth.dev/addresses"] ?? "");
        const running = sandboxOf("node-a", "pools", pod.metadata.uid, cid);
        const [eth0 = "", net1 = ""] = await given(running, "eth0", "net1");
        assert.match(`${eth0} ${net1}`, /^10\.20\.0\.\d+\/24 10\.30\.0\.\d+\/24$/);
        await untilState("pools", `${cid} up`);
        for (const name of ["eth0", "net1"]) await running.node.runtime.del(running.on(name));
        await forceDelete(cluster.admin, PODS, { namespace, name: "pools" });
        await untilState("pools", `${cid} ended`);
      }
      assert.equal(reported[0], reported[1]);
      const holder = await asking("first", { [IPS]: "10.30.0.96@net1" });
      const any = await asking("any", { [IPS]: "10.20.0.96,10.30.0.96@net1", "berth.dev/fallback": "any" });
      const running = sandboxOf("node-a", "any", any.metadata.uid, "a1");
      const [eth0 = "", net1 = ""] = await given(running, "eth0", "net1");
      assert.equal(eth0, "10.20.0.96/24");
      assert.match(net1, /^10\.30\.0\.(?!96\/)\d+\/24$/);
      for (const name of ["eth0", "net1"]) await running.node.runtime.del(running.on(name));
      for (const name of [any.metadata.name, holder.metadata.name])
        await forceDelete(cluster.admin, PODS, { namespace, name });
    });

    it("may be asked for in a claim that somebody makes", async () => {
      const place = { namespace, name: "scanner" };
      const interfacePools = { eth0: ["db/IPv4"], net1: ["lan/IPv4"] };
      await make(cluster.admin, CLAIMS, place, { spec: { request: { interfacePools } } });
      const places = await eventually("it is reserved", async () => (await claimOf("scanner"))?.interfaces);
      assert.deepEqual(Object.keys(places).toSorted(), ["eth0", "net1"]);
      await assert.rejects(
        make(
          cluster.admin,
          CLAIMS,
          { namespace, name: "wrong" },
          {
            spec: { request: { interfacePools, pools: ["db"] } },
          },
        ),
        /cannot stand beside spec\.request\.pools/,
      );
      const pod = await asking("scanner", { "berth.dev/sticky": "true" });
      const running = sandboxOf("node-a", "scanner", pod.metadata.uid, "s1");
      const wanted = ["eth0", "net1"].map((name) => `${places[name]?.join()}/24`);
      assert.deepEqual(await given(running, "eth0", "net1"), wanted);
      for (const name of ["eth0", "net1"]) await running.node.runtime.del(running.on(name));
      await forceDelete(cluster.admin, PODS, place);
    });
  });
}
