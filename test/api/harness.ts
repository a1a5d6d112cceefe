// SPDX-License-Identifier: Apache-2.0
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { type Connection, connect } from "../../kube/connection.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { issueAuthority, issueLeaf } from "../../webhook/certificates.ts";
import { type Ended, run } from "../support/process.ts";
import { partOf } from "./binaries.ts";
import { Daemon } from "./daemon.ts";
import { freePorts } from "./ports.ts";

/** A person or program that the API server knows by a token. */
export interface TestUser {
  readonly name: string;
  readonly groups: readonly string[];
}

export interface ControlPlaneOptions {
  /** Default RBAC, which refuses `admin` nothing. */
  readonly authorization?: "AlwaysAllow" | "RBAC";
  /** Besides `admin`, who is in system:masters. */
  readonly users?: readonly TestUser[];
  /** etcd writes to the disk before it answers; slow, and for tests of power loss alone. */
  readonly durable?: boolean;
  readonly apiServerFlags?: readonly string[];
}

/** Cold, on a machine with other things to do. */
const READY_MS = 120_000;
const ADMIN: TestUser = { name: "admin", groups: ["system:masters"] };

/** etcd and kube-apiserver on loopback ports of their own, in a folder of their own, like controller-runtime's envtest. */
export class ControlPlane {
  readonly url: string;
  /** Of its etcd, which anybody on this host may write into. */
  readonly etcdUrl: string;
  readonly folder: string;
  readonly etcd: Daemon;
  readonly apiServer: Daemon;
  /** PEM of the authority that signed the API server's certificate. */
  readonly ca: string;
  readonly #tokens: ReadonlyMap<string, string>; // user name -> token
  readonly #connections: Connection[] = [];

  constructor(parts: {
    url: string;
    etcdUrl: string;
    folder: string;
    etcd: Daemon;
    apiServer: Daemon;
    ca: string;
    tokens: ReadonlyMap<string, string>;
  }) {
    this.url = parts.url;
    this.etcdUrl = parts.etcdUrl;
    this.folder = parts.folder;
    this.etcd = parts.etcd;
    this.apiServer = parts.apiServer;
    this.ca = parts.ca;
    this.#tokens = parts.tokens;
  }

  /** How that user reaches the API server. */
  kubeConfig(user = ADMIN.name): KubeConfig {
    const token = this.#tokens.get(user);
    if (token === undefined) throw new Error(`the control plane has no user ${user}`);
    return kubeConfigOf({ server: this.url, ca: this.ca, user, token });
  }

  /** A connection of Berth's own, closed with the control plane. */
  connect(user?: string): Connection {
    const connection = connect(this.kubeConfig(user), { clock: createClock(), userAgent: "berth-test" });
    this.#connections.push(connection);
    return connection;
  }

  /** Runs kubectl as that user, with a discovery cache of its own. */
  async kubectl(args: readonly string[], options: { stdin?: string; user?: string } = {}): Promise<Ended> {
    const { user = ADMIN.name, stdin = "" } = options;
    const file = join(this.folder, `${user}.kubeconfig`);
    writeFileSync(file, this.kubeConfig(user).exportConfig(), { mode: 0o600 });
    const env = { HOME: this.folder, KUBECONFIG: file, KUBECACHEDIR: join(this.folder, "kubectl") };
    return await run(partOf("kubectl"), args, { env, stdin: { text: stdin } });
  }

  /** Starts what does not run, and waits until the API server is ready. */
  async start(): Promise<void> {
    this.etcd.start();
    this.apiServer.start();
    const connection = this.connect();
    try {
      for (const deadline = Date.now() + READY_MS; !(await isReady(connection)); await pause(50)) {
        const dead = [this.etcd, this.apiServer].find((part) => !part.running);
        if (dead === undefined && Date.now() < deadline) continue;
        const why = dead === undefined ? `not ready within ${READY_MS} ms` : `${dead.name} ended`;
        throw new Error(`the control plane: ${why}\n${(dead ?? this.apiServer).tail()}`);
      }
    } finally {
      connection.close();
    }
  }

  /** Ends everything and removes the folder. May be called twice. */
  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    // an API server that is asked nicely waits for its watches
    await this.apiServer.stop("SIGKILL");
    await this.etcd.stop("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts a control plane of its own; whoever calls this closes it. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const plane = await prepare(options);
  try {
    await plane.start();
    return plane;
  } catch (error) {
    await plane.close();
    throw error;
  }
}

async function prepare(options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), "berth-api-"));
  chmodSync(folder, 0o700);
  const [client = 0, peer = 0, secure = 0] = await freePorts(3);
  const ca = await writeCertificates(folder);
  const tokens = writeTokens(folder, [ADMIN, ...(options.users ?? [])]);
  const etcd = new Daemon(
    "etcd",
    [partOf("etcd"), ...etcdFlags(folder, client, peer), ...(options.durable ? [] : ["--unsafe-no-fsync"])],
    join(folder, "etcd.log"),
  );
  const apiServer = new Daemon(
    "kube-apiserver",
    [partOf("kube-apiserver"), ...apiServerFlags(folder, client, secure, options)],
    join(folder, "kube-apiserver.log"),
  );
  const urls = { url: `https://127.0.0.1:${secure}`, etcdUrl: `http://127.0.0.1:${client}` };
  return new ControlPlane({ ...urls, folder, etcd, apiServer, ca, tokens });
}

function etcdFlags(folder: string, client: number, peer: number): string[] {
  return [
    `--data-dir=${join(folder, "etcd")}`,
    // as kubeadm sets it: without it a kind that nobody changes has no bookmarks, and its watch seems dead
    "--watch-progress-notify-interval=5s",
    `--listen-client-urls=http://127.0.0.1:${client}`,
    `--advertise-client-urls=http://127.0.0.1:${client}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-cluster=default=http://127.0.0.1:${peer}`,
    "--log-level=warn",
  ];
}

function apiServerFlags(
  folder: string,
  client: number,
  secure: number,
  options: ControlPlaneOptions,
): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${client}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--secure-port=${secure}`,
    `--tls-cert-file=${join(folder, "server.crt")}`,
    `--tls-private-key-file=${join(folder, "server.key")}`,
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    `--authorization-mode=${options.authorization ?? "RBAC"}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${join(folder, "accounts.key")}`,
    `--service-account-signing-key-file=${join(folder, "accounts.key")}`,
    "--service-cluster-ip-range=10.96.0.0/16",
    // nobody makes the default service account here
    "--disable-admission-plugins=ServiceAccount",
    "--delete-collection-workers=8",
    ...(options.apiServerFlags ?? []),
  ];
}

/** Gives the authority's PEM. */
async function writeCertificates(folder: string): Promise<string> {
  const clock = createClock();
  const authority = await issueAuthority(clock);
  const names = { dnsNames: ["localhost", "kubernetes.default.svc"], addresses: ["127.0.0.1", "10.96.0.1"] };
  const leaf = await issueLeaf(authority, names, clock);
  const accounts = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text, { mode: 0o600 });
  write("server.crt", leaf.cert);
  write("server.key", leaf.key);
  write("accounts.key", accounts.privateKey.export({ type: "sec1", format: "pem" }).toString());
  return authority.cert;
}

function writeTokens(folder: string, users: readonly TestUser[]): ReadonlyMap<string, string> {
  const random = createRandom();
  const tokens = new Map(users.map(({ name }) => [name, random.token()])); // user name -> token
  const lines = users.map(
    ({ name, groups }) => `${tokens.get(name)},${name},${name},"${groups.join(",")}"\n`,
  );
  writeFileSync(join(folder, "tokens.csv"), lines.join(""), { mode: 0o600 });
  return tokens;
}

function kubeConfigOf(to: { server: string; ca: string; user: string; token: string }): KubeConfig {
  const config = new KubeConfig();
  const caData = Buffer.from(to.ca).toString("base64");
  const cluster = { name: "test", server: to.server, caData, skipTLSVerify: false };
  config.loadFromClusterAndUser(cluster, { name: to.user, token: to.token });
  return config;
}

async function isReady(connection: Connection): Promise<boolean> {
  try {
    const { status } = await connection.call({ method: "GET", path: "/readyz", timeoutMs: 2_000 });
    return status === 200;
  } catch {
    return false;
  }
}
