// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, from pools that are cut into blocks: one small range for all nodes, zones, namespaces by label.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { BERTH_NAMESPACE, configureNode } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Lab, type Running } from "./lab.ts";
import { deployment, type Json, namespace, pod, pool, TEAM } from "./objects.ts";

const ZONE = "topology.kubernetes.io/zone";
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
const NETWORK = { cidr: "10.40.0.0/16", gateway: "10.40.0.1" };
const ROUTES = [{ dst: "0.0.0.0/0" }];
const range = (from: string, to: string) => ({
  ranges: [{ ...NETWORK, from, to }],
  routes: ROUTES,
  cooldown: "1s",
});
/** 21 addresses for both nodes. */
const SHARED = pool("shared", {
  ...range("10.40.3.50", "10.40.3.70"),
  blockSize: { ipv4: 32 },
  default: true,
});

let lab: Lab;
before(async () => {
  lab = await Lab.open("blocks");
  for (const node of lab.cluster.nodes) await configureNode(node, "berth", "pools");
});
afterEach(async () => {
  for (const { name, isOn } of lab.cluster.nodes) if (!isOn) await lab.cluster.powerOn(name);
  for (const { name } of lab.cluster.nodes) {
    await lab.cluster.startDaemons(name);
    await lab.kubectl(["taint", "node", name, `${OUT_OF_SERVICE}-`]);
    await lab.kubectl(["label", "node", name, `${ZONE}-`]);
    await lab.nodeReturns(name);
  }
  await lab.must(["delete", "deployments,pods", "--all", "--wait=true", "--timeout=120s"]);
  await lab.must(["delete", "pods", "-l", "k8s-app=kube-dns", "--wait=true"], { namespace: "kube-system" });
  await lab.check();
  const pools = (await lab.must(["get", "ippools", "-l", "lab=blocks", "-o", "name"]))
    .split("\n")
    .filter(Boolean);
  for (const one of pools) await lab.must(["patch", one, "--type=merge", "-p", '{"spec":{"disabled":true}}']);
  await lab.until(
    "the blocks of a pool that is disabled come back",
    async () => (await lab.must(["get", "ipblocks", "-o", "name"])) === "",
  );
  await lab.must(["delete", "ippools", "-l", "lab=blocks", "--wait=true", "--timeout=60s"]);
});
after(async () => {
  for (const node of lab.cluster.nodes) await configureNode(node, "berth");
  await lab?.close();
});

/** The taint has sent Berth's own pods to the other node, where they have addresses of the pool: they get others. */
async function moveBerthOut(): Promise<void> {
  const deployments = ["deployment/berth-webhook", "deployment/berth-issuer"];
  for (const node of lab.cluster.nodes) await configureNode(node, "berth");
  for (const one of deployments) {
    await lab.must(["rollout", "restart", one], { namespace: BERTH_NAMESPACE });
    await lab.must(["rollout", "status", one, "--timeout=120s"], { namespace: BERTH_NAMESPACE });
  }
  for (const node of lab.cluster.nodes) await configureNode(node, "berth", "pools");
}

async function makePools(...pools: readonly Json[]): Promise<void> {
  await lab.apply(pools);
  for (const { metadata } of pools as readonly { readonly metadata: { readonly name: string } }[])
    await lab.must(["label", "ippool", metadata.name, "lab=blocks"]);
}

/** The last parts of all addresses. */
const lasts = (pods: readonly Running[]) =>
  pods.map(({ addresses: [one = ""] }) => Number(one.split(".")[3])).toSorted((a, b) => a - b);

describe("blocks", () => {
  it(
    "E0571 21 pods of two nodes share .50 to .70 without one annotation, kube-system's among them, and the 22nd is refused in words",
    caseOptions(),
    async () => {
      const times = new Times("E0571");
      await makePools(SHARED);
      const dns = { labels: { "k8s-app": "kube-dns" }, node: "node-a" };
      await lab.apply([pod("coredns", dns)], { namespace: "kube-system" });
      await lab.apply([deployment("all", { replicas: 20 })]);
      const pods = await lab.runs("app=all", 20);
      times.step("running");
      const address = async () =>
        await lab.must(["get", "pod", "coredns", "-o=jsonpath={.status.podIP}"], {
          namespace: "kube-system",
        });
      await lab.until("coredns has its address", async () => (await address()) !== "");
      const own = Number((await address()).split(".")[3]);
      assert.deepEqual(
        [...lasts(pods), own].toSorted((a, b) => a - b),
        Array.from({ length: 21 }, (_, n) => 50 + n),
      );
      assert.equal(new Set(pods.map(({ node }) => node)).size, 2);
      await lab.pingAll(pods.slice(0, 8));
      times.step("pinged");
      await lab.apply([pod("late", { node: "node-b" })]);
      await lab.until("the 22nd is told why", async () =>
        (await lab.events("late")).some((event) =>
          /pool "shared", whose blocks are \/32.*node-[ab] \d+, node-[ab] \d+/s.test(event),
        ),
      );
      times.step("refused");
      const [one] = pods.filter(({ node }) => node === "node-a");
      assert.ok(one !== undefined);
      await lab.must(["scale", "deployment/all", "--replicas=19"]);
      await lab.runsAgain("late");
      times.step("had the last one");
      await lab.check();
      times.end();
    },
  );

  it(
    "E0572 a drained node's pods have addresses on the other one, down to the last",
    caseOptions(),
    async () => {
      const times = new Times("E0572");
      await makePools(SHARED);
      await lab.apply([deployment("all", { replicas: 21 })]);
      await lab.runs("app=all", 21);
      times.step("running");
      await lab.must([
        ...["drain", "node-a", "--pod-selector=app=all", "--ignore-daemonsets", "--force"],
        ...["--delete-emptydir-data", "--timeout=120s"],
      ]);
      try {
        const now = await lab.runs("app=all", 21, (pods) => pods.every(({ node }) => node === "node-b"));
        times.step("moved");
        assert.deepEqual(
          lasts(now),
          Array.from({ length: 21 }, (_, n) => 50 + n),
        );
      } finally {
        await lab.must(["uncordon", "node-a"]);
      }
      await lab.check();
      times.end();
    },
  );

  it(
    "E0573 a node without power keeps its blocks until it is out of service",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0573");
      await makePools(SHARED);
      await lab.apply([deployment("all", { replicas: 20 })]);
      const were = await lab.runs("app=all", 20);
      const lost = were.filter(({ node }) => node === "node-a");
      await lab.cluster.powerOff("node-a");
      await lab.nodeBecomes("node-a", "Unknown");
      times.step("lost");
      await lab.must(["delete", "pod", "--force", "--grace-period=0", ...lost.map(({ name }) => name)]);
      await lab.until("its blocks are not given to others", async () =>
        (await lab.eventsWith("reason=FailedCreatePodSandBox")).some((event) =>
          event.includes('pool "shared"'),
        ),
      );
      const of = async () =>
        (await lab.must(["get", "ipblocks", '-o=jsonpath={range .items[*]}{.spec.node}{"\\n"}{end}']))
          .split("\n")
          .filter((node) => node === "node-a").length;
      assert.ok((await of()) >= lost.length, "they are node-a's");
      times.step("kept");
      await lab.must(["taint", "node", "node-a", `${OUT_OF_SERVICE}=nodeshutdown:NoExecute`]);
      const now = await lab.runs("app=all", 20, (pods) => pods.every(({ node }) => node === "node-b"));
      times.step("moved");
      assert.equal(new Set(lasts(now)).size, 20);
      times.end();
      await lab.cluster.powerOn("node-a");
      await lab.must(["taint", "node", "node-a", `${OUT_OF_SERVICE}-`]);
      await lab.nodeReturns("node-a");
      await moveBerthOut();
    },
  );

  it(
    "E0574 a /19 of /27 serves the nodes of zone beijing, and /29 an internal and an external pool by the label of a namespace",
    caseOptions(),
    async () => {
      const times = new Times("E0574");
      await lab.must(["label", "node", "node-a", `${ZONE}=beijing`, "--overwrite"]);
      await lab.must(["label", "node", "node-b", `${ZONE}=shanghai`, "--overwrite"]);
      const reach = (name: string) => ({ namespaceSelector: { matchLabels: { reach: name } }, priority: 1 });
      await makePools(
        pool("beijing", {
          ...range("10.40.32.0", "10.40.63.255"),
          blockSize: { ipv4: 27 },
          nodeSelector: { matchLabels: { [ZONE]: "beijing" } },
          // else it would serve the other namespaces too, where their own pool has no address
          namespaceSelector: { matchLabels: TEAM },
        }),
        pool("internal", {
          ...range("10.40.4.0", "10.40.4.127"),
          blockSize: { ipv4: 29 },
          ...reach("internal"),
        }),
        pool("external", {
          ...range("10.40.4.128", "10.40.4.255"),
          blockSize: { ipv4: 29 },
          ...reach("external"),
        }),
      );
      await lab.apply(
        [namespace("inside", { reach: "internal" }), namespace("outside", { reach: "external" })],
        {
          namespace: "default",
        },
      );
      try {
        await lab.apply([deployment("zone", { replicas: 4, node: "node-a" })]);
        await lab.apply([deployment("in", { replicas: 4 })], { namespace: "inside" });
        await lab.apply([deployment("out", { replicas: 4 })], { namespace: "outside" });
        const zone = await lab.runs("app=zone", 4);
        for (const { addresses } of zone)
          assert.match(addresses[0] ?? "", /^10\.40\.(3[2-9]|4\d|5\d|6[0-3])\./);
        const ips = async (name: string) =>
          (
            await lab.must(["get", "pods", '-o=jsonpath={range .items[*]}{.status.podIP}{"\\n"}{end}'], {
              namespace: name,
            })
          )
            .split("\n")
            .filter((ip) => ip !== "");
        await lab.until(
          "all have addresses",
          async () => (await ips("inside")).length === 4 && (await ips("outside")).length === 4,
        );
        const third = (ip: string) => Number(ip.split(".")[3]);
        for (const ip of await ips("inside")) assert.ok(ip.startsWith("10.40.4.") && third(ip) < 128, ip);
        for (const ip of await ips("outside")) assert.ok(ip.startsWith("10.40.4.") && third(ip) >= 128, ip);
        await lab.pingAll(zone);
        times.step("pinged");
        await lab.check();
      } finally {
        await lab.must(["delete", "namespace", "inside", "outside", "--wait=true", "--timeout=120s"]);
      }
      times.end();
    },
  );
});
