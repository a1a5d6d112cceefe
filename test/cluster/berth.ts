// SPDX-License-Identifier: Apache-2.0
// Berth in the cluster, as an administrator installs it: the image, the nodes' CNI configuration, the chart.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { partOf } from "../api/binaries.ts";
import { run } from "../support/process.ts";
import type { Cluster } from "./cluster.ts";
import { type Machine, PATH } from "./machine.ts";
import { POD_CABLE } from "./network.ts";
import { importImage } from "./node.ts";
import type { Json } from "./objects.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const BERTH_NAMESPACE = "berth-system";
/** As the chart calls it, if nothing is said. */
export const AGENT_NAMESPACE = "berth-system-agents";
export const CHART = `${ROOT}charts/berth`;
const IMAGE = `${ROOT}build/berth-image.tar`;
const CONFLIST = "/etc/cni/net.d/10-berth.conflist";
const SUBNET = { subnet: "10.244.0.0/16", gateway: "10.244.0.1" };

/** Whether a node gave it out of its own ranges. */
export const isOfRanges = (ip: string): boolean => ip.startsWith("10.244.");

/** Who gives out the addresses of a node's own range, to pods that did not ask for one. */
export type Ipam = "berth" | "host-local";

/** Installs it, or upgrades it to what is here now. It serves when this resolves. */
export async function installBerth(cluster: Cluster, values: readonly string[] = []): Promise<void> {
  await importBerth(cluster);
  for (const node of cluster.nodes) await configureNode(node, "berth");
  const into = ["--namespace", BERTH_NAMESPACE, "--create-namespace", "--wait", "--timeout", "3m"];
  // without a value of its own an upgrade keeps those of the installation before, such as the README's
  await helm(cluster, ["upgrade", "--install", "berth", CHART, "--reset-values", ...into, ...values]);
}

/** Brings its image to the nodes, in the place of a registry. */
export async function importBerth(cluster: Cluster): Promise<void> {
  if (!existsSync(IMAGE)) throw new Error(`no ${IMAGE}: make it with \`make image\``);
  await Promise.all(cluster.nodes.map((node) => importImage(node, IMAGE)));
}

export async function isInstalled(cluster: Cluster): Promise<boolean> {
  const releases = await helm(cluster, ["list", "--all", "--all-namespaces", "--short"]);
  return releases.split("\n").includes("berth");
}

/** Throws what helm printed when it fails. */
export async function helm(cluster: Cluster, args: readonly string[]): Promise<string> {
  const { path, kubeconfig } = cluster.state;
  const env = { PATH, HOME: path, KUBECONFIG: kubeconfig };
  const { rc, stdout, stderr } = await run(partOf("helm"), args, { env });
  if (rc !== 0) throw new Error(`helm ${args[0]}: ${stderr.trim()}`);
  return stdout;
}

/** Where pods that did not ask have their addresses: the node's own range, Berth's pools, or as `ipam` of an etcd says. */
export type Source = "ranges" | "pools" | Json;

/** Writes the node's CNI configuration: macvlan, and where pods that do not ask have their addresses. */
export async function configureNode(node: Machine, ipam: Ipam, source: Source = "ranges"): Promise<void> {
  const text = JSON.stringify(conflistOf(node.name, ipam, source), undefined, 2);
  await node.must(["sh", "-c", `cat >${CONFLIST}.new && mv ${CONFLIST}.new ${CONFLIST}`], text);
}

function conflistOf(node: string, ipam: Ipam, source: Source) {
  // two plugins, each of which knows its own: no address may be in the ranges of both
  const third = (node === "node-a" ? 1 : 2) + (ipam === "berth" ? 0 : 10);
  const range = { ...SUBNET, rangeStart: `10.244.${third}.10`, rangeEnd: `10.244.${third}.250` };
  return {
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      {
        type: "macvlan",
        master: POD_CABLE,
        capabilities: { "io.kubernetes.cri.pod-annotations": true },
        ipam: { type: ipam, ...fieldsOf(source, range) },
      },
    ],
  };
}

function fieldsOf(source: Source, range: Json): Json {
  if (source === "pools") return {};
  return source === "ranges" ? { ranges: [[range]], routes: [{ dst: "0.0.0.0/0" }] } : source;
}
