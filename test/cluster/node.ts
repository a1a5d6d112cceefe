// SPDX-License-Identifier: Apache-2.0
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { partOf } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { kubeconfigName, kubeletUser } from "./control-plane.ts";
import { cgroupOf } from "./host.ts";
import { PAUSE_IMAGE } from "./images.ts";
import type { Machine } from "./machine.ts";
import type { StateFolder } from "./state.ts";

const RUNTIME = "/run/containerd/containerd.sock";
const KUBELET_PORT = 10_250;
export const POD_CIDR_BRIDGE = "cidrs";
const PLUGIN_FOLDERS = ["/usr/lib/cni", "/opt/cni/bin"];

/** A folder of the node's disk in place of this host's, or laid over it, so that this host's stays as it is. */
export function nodeMounts(node: Machine): string {
  const file = join(node.disk(), "mounts.sh");
  const disks = ["/var/lib", "/var/log"].map((path) => `mount --bind "${node.disk(path)}" ${path}`);
  const layers = ["/etc", "/opt"].map((path) => {
    const [upper, work] = [node.disk("over", path, "upper"), node.disk("over", path, "work")];
    return `mount -t overlay overlay -o "lowerdir=${path},upperdir=${upper},workdir=${work}" ${path}`;
  });
  writeFileSync(file, `${[...disks, ...layers].join("\n")}\n`);
  return file;
}

/** containerd; its socket answers when this resolves. */
export async function startRuntime(node: Machine): Promise<void> {
  const template = join(node.disk(), "podcidr-template.json");
  writeFileSync(template, podCidrTemplate());
  writeFileSync(join(node.disk(), "containerd.toml"), runtimeConfig(template));
  await node.must(["mkdir", "-p", "/opt/cni/bin", "/etc/cni/net.d", "/var/log/pods"]);
  await linkPlugins(node);
  await node.start("containerd", ["containerd", "--config", join(node.disk(), "containerd.toml")]);
  await eventually(
    `containerd of ${node.name} answers`,
    async () => {
      if (!node.isRunning("containerd")) throw new Error(`containerd ended\n${node.tail("containerd")}`);
      return (await node.run([...CTR, "version"])).rc === 0 || undefined;
    },
    30_000,
  );
}

/** With the runtime's own namespace for what kubelets start. */
export const CTR = ["ctr", "--address", RUNTIME, "--namespace", "k8s.io"];

export async function importImage(node: Machine, archive: string): Promise<void> {
  await node.must([...CTR, "images", "import", archive]);
}

/**
 * The kubelet; it listens when this resolves. It ends where containerd answers and its CRI is not ready yet, and is started
 * again, as a node's init does.
 */
export async function startKubelet(node: Machine, state: StateFolder, address: string): Promise<void> {
  const config = join(node.disk(), "kubelet.json");
  writeFileSync(config, JSON.stringify(kubeletConfig(node.name, address), undefined, 2));
  const command = [
    partOf("kubelet"),
    `--config=${config}`,
    `--kubeconfig=${state.file(kubeconfigName(kubeletUser(node.name)))}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${address}`,
  ];
  await eventually(
    `the kubelet of ${node.name} listens`,
    async () => {
      await node.start("kubelet", command).catch(() => undefined); // it may be over before it is seen
      return (await node.run(["ss", "-Hltn", `sport = :${KUBELET_PORT}`])).stdout !== "" || undefined;
    },
    60_000,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${node.tail("kubelet")}`);
  });
}

/** The main plugins that are installed here, as on any node; Berth's own is not among them. */
async function linkPlugins(node: Machine): Promise<void> {
  const from = PLUGIN_FOLDERS.find((folder) => existsSync(join(folder, "bridge")));
  if (from === undefined) throw new Error(`no CNI plugins in ${PLUGIN_FOLDERS.join(" or ")}`);
  if (from === "/opt/cni/bin") return; // what is laid over it lets them through
  const plugins = readdirSync(from).map((name) => join(from, name));
  await node.must(["ln", "-sf", ...plugins, "/opt/cni/bin/"]);
}

/**
 * What containerd makes of the node's CIDRs, once the kubelet tells it some and nobody else has given it a network: host-local on a bridge, as
 * some clouds' nodes have it. Other configurations in the folder come first by name.
 */
function podCidrTemplate(): string {
  const ranges = `[{{range $i, $cidr := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$cidr}}"}]{{end}}]`;
  return JSON.stringify(podCidrNetwork({ type: "host-local", ranges: "RANGES" })).replace('"RANGES"', ranges);
}

/** A bridge on each node, for its own CIDRs. */
export function podCidrNetwork(ipam: Readonly<Record<string, unknown>>) {
  const routes = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }];
  const plugin = { type: "bridge", bridge: POD_CIDR_BRIDGE, isGateway: true, ipam: { ...ipam, routes } };
  return { cniVersion: "1.0.0", name: "node-cidrs", plugins: [plugin] };
}

function runtimeConfig(template: string): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "${RUNTIME}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
    max_conf_num = 1
    conf_template = "${template}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`;
}

function kubeletConfig(node: string, address: string): Readonly<Record<string, unknown>> {
  return {
    kind: "KubeletConfiguration",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    containerRuntimeEndpoint: `unix://${RUNTIME}`,
    address,
    // the API server is the only one who can reach it
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    cgroupDriver: "cgroupfs",
    cgroupRoot: cgroupOf(node),
    failCgroupV1: false,
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    oomScoreAdj: 0,
    nodeStatusUpdateFrequency: "1s",
    nodeStatusReportFrequency: "1s",
    kubeAPIQPS: 100,
    kubeAPIBurst: 200,
    maxPods: 150,
    clusterDNS: ["10.96.0.10"],
    clusterDomain: "cluster.local",
    imageGCHighThresholdPercent: 100,
    evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  };
}
