// SPDX-License-Identifier: Apache-2.0
// Nodes that have neither a CIDR nor a network, and get both by way of Berth, as docs/networks.md says: first host-local serves their pods, then
// Berth's own agent. It is before Berth's own installation, and leaves a cluster without Berth.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import { parseAddress, parseCidr, toNumber } from "../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../allocator/ip/ip-range.ts";
import { BERTH_NAMESPACE, CHART, helm, importBerth, isInstalled } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Cluster } from "./cluster.ts";
import { Lab, type Running } from "./lab.ts";
import type { Machine } from "./machine.ts";
import { POD_CIDR_BRIDGE, podCidrNetwork } from "./node.ts";
import { pod, pool } from "./objects.ts";
import { StateFolder } from "./state.ts";

const ONE_EACH = { use: "PodCIDR", blockSize: { ipv4: 24, ipv6: 64 } };
/** Two that are far from each other; IPv6 is for all nodes. The one with a selector is made first: a Node's CIDRs are written once. */
const POOLS = [
  pool("node-b", {
    ranges: [{ cidr: "172.29.7.0/24" }],
    nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24 } },
    nodeSelector: { matchLabels: { "kubernetes.io/hostname": "node-b" } },
  }),
  pool("nodes", { ranges: [{ cidr: "10.98.0.0/23" }, { cidr: "fd00:98::/48" }], nodeCIDRs: ONE_EACH }),
];
const VALUES = ["nodeCIDRs.families={IPv4,IPv6}", "webhook.hostNetwork=true"];
const CONFLISTS = "/etc/cni/net.d/10-*.conflist";
/** Of the nodes on their own network, to route IPv6 by. */
const nodeAddress = (node: string) => (node === "node-a" ? "fd00:30::11" : "fd00:30::12");

type Cidrs = ReadonlyMap<string, readonly string[]>; // node -> its CIDRs

async function install(cluster: Cluster, how: readonly string[]): Promise<void> {
  const into = ["--namespace", BERTH_NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m"];
  await helm(cluster, ["upgrade", "--install", "berth", CHART, ...into, ...how]);
}

async function podCidrs(lab: Lab): Promise<Cidrs> {
  const cidrs = new Map<string, readonly string[]>();
  for (const { name } of lab.cluster.nodes) {
    const text = await lab.must(["get", "node", name, "-o=jsonpath={.spec.podCIDRs}"]);
    cidrs.set(name, text === "" ? [] : (JSON.parse(text) as string[]));
  }
  return cidrs;
}

/** As the agent of such a network does, or a cloud: each node reaches the others' CIDRs by way of them. */
async function route({ nodes }: Cluster, cidrs: Cidrs, act: "add" | "del"): Promise<void> {
  const lines = (node: Machine) => [
    ...(act === "add" ? [`addr add ${nodeAddress(node.name)}/64 dev eth0 nodad`] : []),
    ...nodes
      .filter((other) => other !== node)
      .flatMap((other) =>
        (cidrs.get(other.name) ?? []).map((cidr) => {
          const via = parseCidr(cidr)?.family === "IPv4" ? ipv4Of(other.name) : nodeAddress(other.name);
          return `route ${act} ${cidr} via ${via}`;
        }),
      ),
    ...(act === "del" ? [`addr del ${nodeAddress(node.name)}/64 dev eth0`] : []),
  ];
  for (const node of nodes) await node.must(["ip", "-batch", "-"], `${lines(node).join("\n")}\n`);
}

function ipv4Of(node: string): string {
  return node === "node-a" ? "172.30.0.11" : "172.30.0.12";
}

/** Addresses of IPv4 that host-local has given on the nodes. */
async function leases({ nodes }: Cluster): Promise<number> {
  const script = "ls /var/lib/cni/networks/node-cidrs 2>/dev/null | grep -c '^[0-9.]*$' || true";
  const counts = await Promise.all(nodes.map((node) => node.must(["sh", "-c", script])));
  return counts.reduce((sum, text) => sum + Number(text), 0);
}

/** Two pods of each node have an address of each family, of their node's CIDRs, and reach each other. Then they go. */
async function serve(lab: Lab, app: "host-local" | "berth", cidrs: Cidrs): Promise<void> {
  const places = lab.cluster.nodes.flatMap(({ name }) => [name, name]);
  await lab.apply(places.map((node, n) => pod(`${app}-${n}`, { node, labels: { app } })));
  const pods = await lab.runs(`app=${app}`, places.length);
  for (const one of pods)
    assert.ok(isServed(one, cidrs.get(one.node) ?? []), JSON.stringify([one, [...cidrs]]));
  assert.equal(await leases(lab.cluster), app === "berth" ? 0 : pods.length);
  await lab.pingAll(pods);
  await lab.must(["delete", "pods", "-l", `app=${app}`, "--wait=true", "--timeout=60s"]);
}

function isServed({ addresses }: Running, cidrs: readonly string[]): boolean {
  return addresses.length === 2 && cidrs.every((cidr) => addresses.some((address) => liesIn(address, cidr)));
}

function liesIn(address: string, cidr: string): boolean {
  const [one, network] = [parseAddress(address), parseCidr(cidr)];
  return one !== undefined && network !== undefined && contains(fullInterval(network), toNumber(one));
}

/** Nothing of it is left but what a Node keeps for good. */
async function remove(lab: Lab, cidrs: Cidrs): Promise<void> {
  const { cluster } = lab;
  for (const node of cluster.nodes) {
    await node.must(["sh", "-c", `rm -f ${CONFLISTS}`]);
    await node.must(["ip", "link", "del", POD_CIDR_BRIDGE]);
  }
  await route(cluster, cidrs, "del");
  await helm(cluster, ["uninstall", "berth", "--namespace", BERTH_NAMESPACE, "--wait"]);
  const released = ["--type=merge", "-p", '{"metadata":{"finalizers":null}}'];
  await lab.must(["patch", "ippools", "nodes", "node-b", ...released]);
  // the policies are in force for a moment longer than they are there
  const drop = ["delete", "ippools,ipblocks", "--all", "--wait=true", "--timeout=60s"];
  await lab.until("its records go", async () => (await lab.kubectl(drop)).rc === 0);
}

let lab: Lab | undefined;
after(async () => await lab?.close());

describe("CIDRs of nodes", () => {
  it(
    "E0620 nodes without a network get their CIDRs from pools, and host-local, then Berth serves pods on them, which reach each other",
    caseOptions({ machines: true }),
    async (t) => {
      const cluster = new Cluster(StateFolder.of(process.env));
      if (await isInstalled(cluster)) {
        t.skip("Berth is installed in this cluster already; `make cluster-down` first");
        return;
      }
      const own = await Lab.open("node-cidrs");
      lab = own;
      const times = new Times("E0620");
      await importBerth(cluster);
      assert.deepEqual([...(await podCidrs(own)).values()], [[], []], "nobody else gives CIDRs");
      await install(
        cluster,
        VALUES.flatMap((value) => ["--set", value]),
      );
      times.step("installed on nodes that are not ready");
      await Lab.prepare(POOLS);
      let cidrs: Cidrs = new Map();
      await own.until("the nodes have CIDRs", async () => {
        cidrs = await podCidrs(own);
        return [...cidrs.values()].every(({ length }) => length === 2);
      });
      assert.match(cidrs.get("node-a")?.join() ?? "", /^10\.98\.[01]\.0\/24,fd00:98:0:[0-9a-f]+::\/64$/);
      assert.match(cidrs.get("node-b")?.join() ?? "", /^172\.29\.7\.0\/24,fd00:98:0:[0-9a-f]+::\/64$/);
      assert.equal(new Set([...cidrs.values()].flat()).size, 4);
      times.step("had CIDRs");
      for (const { name } of cluster.nodes) await own.nodeReturns(name);
      await route(cluster, cidrs, "add");
      await serve(own, "host-local", cidrs);
      times.step("host-local");
      const conflist = cluster.state.file("node-cidrs.conflist");
      const ranges = ["usePodCidr", "usePodCidrIPv6"].map((subnet) => [{ subnet }]);
      writeFileSync(conflist, JSON.stringify(podCidrNetwork({ type: "berth", ranges })));
      await install(cluster, ["--reuse-values", "--set-file", `cni.conflist=${conflist}`]);
      for (const node of cluster.nodes)
        await own.until("the agent has written the network", async () => {
          return (
            (
              await node.run([
                "sh",
                "-c",
                "cd /etc/cni/net.d && test -f 10-berth.conflist && rm 10-containerd*",
              ])
            ).rc === 0
          );
        });
      times.step("upgraded");
      await serve(own, "berth", cidrs);
      times.step("berth");
      await own.check();
      await remove(own, cidrs);
      times.end();
    },
  );
});
