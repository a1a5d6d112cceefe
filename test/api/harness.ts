// SPDX-License-Identifier: Apache-2.0
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { patient } from "../support/eventually.ts";
import { auditFlags } from "./audit-log.ts";
import { ON_ONE_PROCESSOR, partOf, RARELY_COLLECTING, withVariables } from "./binaries.ts";
import { installDefinitions } from "./crds.ts";
import { Daemon } from "./daemon.ts";
import { ADMIN, ControlPlane, type PlaneAccess, type TestUser } from "./plane.ts";
import { IDLE_API_SERVER, IDLE_ETCD } from "./plane-idle.ts";
import { useTemplate } from "./plane-template.ts";
import { freePorts } from "./ports.ts";

export interface ControlPlaneOptions {
  /** Default RBAC, which refuses `admin` nothing. */
  readonly authorization?: "AlwaysAllow" | "RBAC";
  /** Besides `admin`, who is in system:masters. */
  readonly users?: readonly TestUser[];
  /** etcd writes to the disk before it answers, and both may have all processors; for power loss, loads and benchmarks. */
  readonly durable?: boolean;
  /** With Berth's definitions, which are quicker to have from the start than to install. */
  readonly definitions?: boolean;
  /** Its API server keeps what accounts of Berth ask for (audit-log.ts). */
  readonly audited?: true;
  readonly apiServerFlags?: readonly string[];
}

/** Cold, on a machine with other things to do. */
const READY_MS = 120_000;

/** etcd and kube-apiserver of a test's own, on loopback ports, in a folder of their own, like controller-runtime's envtest. */
export class OwnControlPlane extends ControlPlane {
  readonly etcd: Daemon;
  readonly apiServer: Daemon;

  constructor(access: PlaneAccess, folder: string, daemons: { etcd: Daemon; apiServer: Daemon }) {
    super(access, folder);
    this.etcd = daemons.etcd;
    this.apiServer = daemons.apiServer;
  }

  /** Starts what does not run, and waits until the API server is ready. */
  async start(readyMs = READY_MS): Promise<void> {
    const limit = patient(readyMs);
    this.etcd.start();
    this.apiServer.start();
    const connection = this.connect();
    try {
      for (const deadline = Date.now() + limit; !(await isReady(connection)); await pause(50)) {
        const dead = [this.etcd, this.apiServer].find((part) => !part.running);
        if (dead === undefined && Date.now() < deadline) continue;
        const why = dead === undefined ? `not ready within ${limit} ms` : `${dead.name} ended`;
        throw new Error(`the control plane: ${why}\n${(dead ?? this.apiServer).tail()}`);
      }
    } finally {
      connection.close();
    }
  }

  override async close(): Promise<void> {
    // an API server that is asked nicely waits for its watches
    await this.apiServer.stop("SIGKILL");
    await this.etcd.stop("SIGKILL");
    await super.close();
  }
}

/** Starts a control plane that nobody else uses, and that may be stopped; whoever calls this closes it. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<OwnControlPlane> {
  const plane = await prepare(options);
  try {
    if (options.definitions === true) useTemplate(dataOf(plane.folder));
    await plane.start();
    // those of the template are served some moments after the API server is ready
    if (options.definitions === true) await installDefinitions(plane.connect());
    return plane;
  } catch (error) {
    await plane.close();
    throw error;
  }
}

async function prepare(options: ControlPlaneOptions): Promise<OwnControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), "berth-api-"));
  chmodSync(folder, 0o700);
  const [client = 0, peer = 0, secure = 0] = await freePorts(3);
  const ca = await writeCertificates(folder);
  const tokens = writeTokens(folder, [ADMIN, ...(options.users ?? [])]);
  const variables = withVariables(options.durable === true ? RARELY_COLLECTING : ON_ONE_PROCESSOR);
  const etcd = new Daemon(
    "etcd",
    [
      ...variables,
      partOf("etcd"),
      ...etcdFlags(folder, client, peer),
      ...(options.durable ? [] : ["--unsafe-no-fsync", ...IDLE_ETCD]),
    ],
    join(folder, "etcd.log"),
  );
  const apiServer = new Daemon(
    "kube-apiserver",
    [
      ...variables,
      partOf("kube-apiserver"),
      ...apiServerFlags(folder, client, secure, options),
      ...(options.durable ? [] : IDLE_API_SERVER),
    ],
    join(folder, "kube-apiserver.log"),
  );
  const auditLog = auditLogOf(folder);
  const urls = { url: `https://127.0.0.1:${secure}`, etcdUrl: `http://127.0.0.1:${client}` };
  return new OwnControlPlane({ ...urls, ca, auditLog, tokens }, folder, { etcd, apiServer });
}

/** Where the etcd of a control plane with that folder keeps its data. */
export function dataOf(folder: string): string {
  return join(folder, "etcd");
}

function auditLogOf(folder: string): string {
  return join(folder, "audit.log");
}

function etcdFlags(folder: string, client: number, peer: number): string[] {
  return [
    `--data-dir=${dataOf(folder)}`,
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
    ...(options.audited === true ? auditFlags(folder, auditLogOf(folder)) : []),
    ...(options.apiServerFlags ?? []),
  ];
}

/** Gives the authority's PEM. */
async function writeCertificates(folder: string): Promise<string> {
  const clock = createClock();
  const authority = await issueAuthority(clock);
  const names = { dnsNames: ["localhost", "kubernetes.default.svc"], addresses: ["127.0.0.1", "10.96.0.1"] };
  const leaf = await issueServingCertificate(authority, names, clock);
  const accounts = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text, { mode: 0o600 });
  write("server.crt", leaf.cert);
  write("server.key", leaf.key);
  write("accounts.key", accounts.privateKey.export({ type: "sec1", format: "pem" }).toString());
  return authority.cert;
}

function writeTokens(folder: string, users: readonly TestUser[]): Readonly<Record<string, string>> {
  const random = createRandom();
  const tokens = Object.fromEntries(users.map(({ name }) => [name, random.token()]));
  const lines = users.map(({ name, groups }) => `${tokens[name]},${name},${name},"${groups.join(",")}"\n`);
  writeFileSync(join(folder, "tokens.csv"), lines.join(""), { mode: 0o600 });
  return tokens;
}

async function isReady(connection: Connection): Promise<boolean> {
  try {
    const { status } = await connection.call({ method: "GET", path: "/readyz", timeoutMs: patient(2_000) });
    return status === 200;
  } catch {
    return false;
  }
}
