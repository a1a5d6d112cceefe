// SPDX-License-Identifier: Apache-2.0
import { generateKeyPairSync } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { partOf } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { run } from "../support/process.ts";
import { type Machine, PATH } from "./machine.ts";
import { ROUTER, SERVICE_ADDRESS, SERVICES } from "./network.ts";
import type { StateFolder } from "./state.ts";

/** On a machine with other things to do. */
const READY_MS = 120_000;
/** Where machines and this host find the API server. */
const URL = `https://${ROUTER}`;
const ETCD = "http://127.0.0.1:2379";
/** A node that says nothing for so long is not ready. */
const SILENCE = "10s";

interface User {
  readonly name: string;
  readonly group: string;
}

const ADMIN: User = { name: "admin", group: "system:masters" };
const CONTROLLERS: User = { name: "system:kube-controller-manager", group: "" };
const SCHEDULER: User = { name: "system:kube-scheduler", group: "" };

export function kubeletUser(node: string): string {
  return `system:node:${node}`;
}

/** Certificates, tokens and kubeconfigs, once for the life of a cluster. */
export async function writeCredentials(state: StateFolder, nodes: readonly string[]): Promise<void> {
  if (existsSync(state.kubeconfig)) return;
  const clock = createClock();
  const ca = await issueAuthority(clock);
  const dnsNames = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const leaf = await issueServingCertificate(
    ca,
    { dnsNames, addresses: [ROUTER, SERVICE_ADDRESS, "127.0.0.1"] },
    clock,
  );
  const accounts = generateKeyPairSync("rsa", { modulusLength: 2048 });
  state.folder("pki");
  const write = (file: string, text: string) => writeFileSync(state.file(file), text, { mode: 0o600 });
  write("pki/ca.crt", ca.cert);
  write("pki/server.crt", leaf.cert);
  write("pki/server.key", leaf.key);
  write("pki/accounts.key", accounts.privateKey.export({ type: "pkcs1", format: "pem" }).toString());
  const kubelets = nodes.map((node) => ({ name: kubeletUser(node), group: "system:nodes" }));
  const random = createRandom();
  const tokens: string[] = [];
  for (const { name, group } of [CONTROLLERS, SCHEDULER, ...kubelets, ADMIN]) {
    const token = random.token();
    tokens.push(`${token},${name},${name}${group === "" ? "" : `,"${group}"`}\n`);
    write(kubeconfigName(name), kubeconfigOf(ca.cert, name, token));
  }
  write("pki/tokens.csv", tokens.join(""));
  write("kubeconfig", readFileSync(state.file(kubeconfigName(ADMIN.name)), "utf8"));
}

/** The file of a user's kubeconfig in the state's folder. */
export function kubeconfigName(user: string): string {
  return `pki/${user.replaceAll(":", "-")}.kubeconfig`;
}

function kubeconfigOf(ca: string, user: string, token: string): string {
  const cluster = { server: URL, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "berth",
    clusters: [{ name: "berth", cluster }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "berth", context: { cluster: "berth", user } }],
  });
}

/** etcd and the API server, which is ready when this resolves. */
export async function startApi(control: Machine, state: StateFolder): Promise<void> {
  const data = control.disk("etcd");
  await control.start("etcd", [partOf("etcd"), ...etcdFlags(data)]);
  await control.start("kube-apiserver", [partOf("kube-apiserver"), ...apiServerFlags(state)]);
  await eventually(
    "the API server is ready",
    async () => {
      for (const part of ["etcd", "kube-apiserver"]) {
        if (!control.isRunning(part)) throw new Error(`${part} ended\n${control.tail(part)}`);
      }
      return (await kubectl(state, "get", "--raw", "/readyz")).rc === 0 || undefined;
    },
    READY_MS,
  );
}

/** The controllers and the scheduler. */
export async function startControllers(control: Machine, state: StateFolder): Promise<void> {
  const as = ({ name }: User) => [`--kubeconfig=${state.file(kubeconfigName(name))}`, "--leader-elect=false"];
  await control.start("kube-controller-manager", [
    partOf("kube-controller-manager"),
    ...as(CONTROLLERS),
    `--service-account-private-key-file=${state.file("pki/accounts.key")}`,
    `--root-ca-file=${state.file("pki/ca.crt")}`,
    "--use-service-account-credentials=true",
    // Berth gives them, where a case has pools for that
    "--allocate-node-cidrs=false",
    // it looks for cloud disks, and there is no cloud
    "--controllers=*,-persistentvolume-attach-detach-controller",
    `--node-monitor-grace-period=${SILENCE}`,
    "--node-monitor-period=2s",
    "--bind-address=127.0.0.1",
  ]);
  await control.start("kube-scheduler", [
    partOf("kube-scheduler"),
    ...as(SCHEDULER),
    "--bind-address=127.0.0.1",
  ]);
}

/** As the administrator, with a discovery cache of its own. */
export async function kubectl(state: StateFolder, ...args: readonly string[]) {
  const env = { PATH, HOME: state.path, KUBECONFIG: state.kubeconfig, KUBECACHEDIR: state.file("kubectl") };
  return await run(partOf("kubectl"), args, { env });
}

function etcdFlags(data: string): string[] {
  return [
    `--data-dir=${data}`,
    `--listen-client-urls=${ETCD}`,
    `--advertise-client-urls=${ETCD}`,
    "--listen-peer-urls=http://127.0.0.1:2380",
    "--log-level=warn",
    // as kubeadm sets it: without it a kind that nobody changes has no bookmarks
    "--watch-progress-notify-interval=5s",
    "--unsafe-no-fsync",
  ];
}

function apiServerFlags(state: StateFolder): string[] {
  return [
    `--etcd-servers=${ETCD}`,
    "--bind-address=0.0.0.0",
    `--advertise-address=${ROUTER}`,
    // the port of the Service, at the address of the Service
    "--secure-port=443",
    `--tls-cert-file=${state.file("pki/server.crt")}`,
    `--tls-private-key-file=${state.file("pki/server.key")}`,
    `--token-auth-file=${state.file("pki/tokens.csv")}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${state.file("pki/accounts.key")}`,
    `--service-account-signing-key-file=${state.file("pki/accounts.key")}`,
    `--service-cluster-ip-range=${SERVICES}`,
    // webhooks behind a Service are called at their pods' addresses
    "--enable-aggregator-routing=true",
    "--kubelet-preferred-address-types=InternalIP",
    "--allow-privileged=true",
    "--delete-collection-workers=8",
  ];
}
