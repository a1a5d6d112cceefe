// SPDX-License-Identifier: Apache-2.0
// The webhook as the chart runs it: replicas that are their own authority, behind a Service, by their roles.
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CONFIGURATIONS, SECRETS, SERVICES } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { compileCache } from "../support/process.ts";
import { programFile } from "../support/programs.ts";
import { accountConfig, installAccounts } from "./accounts.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { Daemon } from "./daemon.ts";
import { type ControlPlane, WEBHOOK_USER } from "./plane.ts";
import { freePorts } from "./ports.ts";
import { WEBHOOK_MAIN } from "./replicas.ts";
import { TestService } from "./rolling-service.ts";
import { openControlPlane } from "./shared-plane.ts";
import { configuration } from "./webhooks.ts";

export const SECRET = { namespace: "berth-system", name: "berth-webhook-tls" };
/** Of the authority, with its key. */
export const CA_SECRET = { namespace: "berth-system", name: "berth-webhook-ca" };
const SERVICE = { namespace: "berth-system", name: "berth-webhook" };
const ISSUER_MAIN = programFile("webhook/issuer/main");
/** When a test gives up on it: a machine with other things to do takes its time. */
const READY_MS = 300_000;
/** What the chart gives a replica to end: one that is killed keeps the lease until it runs out. */
const ENDING_MS = 30_000;

export interface RollingReplica {
  readonly name: string;
  readonly port: number;
  readonly process: Daemon;
}

interface RollingOptions {
  readonly count: number;
  /** Beside the variables that every replica needs. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A control plane of its own with such a webhook, which does not run yet. The webhook is closed before the plane. */
export async function startRollingPlane(
  options: RollingOptions,
): Promise<{ readonly plane: ControlPlane; readonly webhook: RollingWebhook }> {
  const plane = await openControlPlane();
  try {
    const connection = plane.connect();
    await installDefinitions(connection);
    await makeNamespaces(connection, [NAMESPACE]);
    return { plane, webhook: await RollingWebhook.install(plane, options) };
  } catch (error) {
    await plane.close();
    throw error;
  }
}

/** On a control plane with RBAC, Berth's kinds and WEBHOOK_USER. */
export class RollingWebhook {
  readonly all: readonly RollingReplica[];
  readonly service: TestService;
  /** What makes the certificates. */
  readonly issuer: Daemon;
  readonly #connection: Connection;

  private constructor(
    all: readonly RollingReplica[],
    service: TestService,
    of: { readonly issuer: Daemon; readonly connection: Connection },
  ) {
    this.all = all;
    this.service = service;
    this.issuer = of.issuer;
    this.#connection = of.connection;
  }

  /** Installs what the chart installs. Nothing runs yet. Whoever calls this closes it before the control plane. */
  static async install(plane: ControlPlane, { count, env = {} }: RollingOptions): Promise<RollingWebhook> {
    const folder = join(plane.folder, "rolling");
    mkdirSync(folder, { recursive: true });
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, plane.kubeConfig(WEBHOOK_USER.name).exportConfig(), { mode: 0o600 });
    const ports = await freePorts(count);
    const all = ports.map((port, n) => {
      const name = `berth-webhook-${n}`;
      const variables = Object.entries({
        ...{ BERTH_NAMESPACE: "berth-system", BERTH_POD_NAME: name, BERTH_HOST: "127.0.0.1" },
        ...{ BERTH_PORT: String(port), BERTH_TLS_SECRET: SECRET.name, BERTH_KUBECONFIG: kubeconfig },
        // what the chart has: longer than it takes until everybody knows that a replica goes
        BERTH_DEPART: "5s",
        ...compileCache(),
        ...env,
      }).map(([key, value]) => `${key}=${value}`);
      const command = ["/usr/bin/env", "-i", ...variables, process.execPath, WEBHOOK_MAIN];
      return { name, port, process: new Daemon(name, command, join(folder, `${name}.log`), ENDING_MS) };
    });
    const connection = plane.connect();
    await installAccounts(connection);
    const issuer = await issuerProcess(plane, folder, env);
    const service = await TestService.start(ports, isReady);
    for (const place of [CA_SECRET, SECRET])
      await new Client(connection, SECRETS).create(place, { type: "Opaque" });
    // the API server asks localhost, for the name of the Service
    await new Client(connection, SERVICES).create(SERVICE, {
      spec: { type: "ExternalName", externalName: "localhost" },
    });
    await installConfigurations(connection, service.port);
    return new RollingWebhook(all, service, { issuer, connection });
  }

  /** Starts them all at once, and waits until each is ready. */
  async start(): Promise<void> {
    this.issuer.start();
    for (const { process } of this.all) process.start();
    await Promise.all(this.all.map((replica) => this.ready(replica)));
  }

  /** Until the Service sends it connections. */
  async ready({ process, port }: RollingReplica): Promise<void> {
    const look = () => {
      if (!process.running) throw new Error(`${process.name} ended\n${process.tail()}`);
      return this.service.has(port) || undefined;
    };
    await eventually(`${process.name} is ready`, look, READY_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${process.tail()}`);
    });
  }

  /** As a Deployment replaces a pod: a successor comes when it has ended. */
  async replace(replica: RollingReplica, signal: NodeJS.Signals): Promise<void> {
    const { name, port, process } = replica;
    await process.stop(signal);
    await eventually(`the Service knows that ${name} is away`, () => !this.service.has(port) || undefined);
    process.start();
    await this.ready(replica);
  }

  /** The configurations and Secret as they are now. */
  async objects(): Promise<{ readonly secret: SecretObject; readonly bundles: readonly string[] }> {
    const secret = await new Client(this.#connection, SECRETS).get(SECRET);
    const found = await Promise.all(
      CONFIGURATIONS.map((one) => new Client(this.#connection, one).get({ name: "berth" })),
    );
    const entries = found.flatMap((item) => (item as unknown as ConfigurationObject).webhooks);
    const bundles = entries.map(({ clientConfig }) => clientConfig.caBundle ?? "");
    return { secret: secret as unknown as SecretObject, bundles };
  }

  /** An administrator wants a new authority, and a certificate of it; or the certificate alone. */
  async rotate(what: "authority" | "leaf"): Promise<void> {
    const body = { metadata: { annotations: { "berth.dev/rotate": what } } };
    const place = what === "authority" ? CA_SECRET : SECRET;
    await new Client(this.#connection, SECRETS).patch(place, { type: "merge", body });
  }

  logs(): string {
    const processes = [this.issuer, ...this.all.map(({ process }) => process)];
    return processes.map((process) => `${process.name}:\n${process.tail(200)}`).join("\n");
  }

  async close(): Promise<void> {
    const processes = [this.issuer, ...this.all.map(({ process }) => process)];
    await Promise.all(processes.map((process) => process.stop("SIGKILL")));
    await this.service.close();
  }
}

/** The issuer's pod as a process, with the token of its account. */
export async function issuerProcess(
  plane: ControlPlane,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Daemon> {
  const kubeconfig = join(folder, "issuer.kubeconfig");
  writeFileSync(kubeconfig, (await accountConfig(plane, "berth-issuer")).exportConfig(), { mode: 0o600 });
  const variables = Object.entries({
    ...{ BERTH_NAMESPACE: "berth-system", BERTH_POD_NAME: "berth-issuer", ...compileCache(), ...env },
    ...{ BERTH_HOST: "127.0.0.1", BERTH_PORT: "0", BERTH_KUBECONFIG: kubeconfig },
  }).map(([key, value]) => `${key}=${value}`);
  const command = ["/usr/bin/env", "-i", ...variables, process.execPath, ISSUER_MAIN];
  return new Daemon("berth-issuer", command, join(folder, "berth-issuer.log"), ENDING_MS);
}

export interface SecretObject {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
}

interface ConfigurationObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}

/** As the chart's, without a caBundle; what stands there is written over, as by a GitOps tool. */
export async function installConfigurations(connection: Connection, port: number): Promise<void> {
  for (const [n, kind] of (["mutating", "validating"] as const).entries()) {
    const { metadata, webhooks } = configuration(kind);
    const body = {
      webhooks: webhooks.map((entry) => ({
        ...entry,
        clientConfig: { service: { ...SERVICE, port, path: entry.clientConfig.service.path } },
      })),
    };
    const [resource] = CONFIGURATIONS.slice(n);
    if (resource === undefined) return;
    const client = new Client(connection, resource);
    if ((await client.create(metadata, body)) === undefined)
      await client.patch(metadata, { type: "merge", body });
  }
}

/** As kubelet asks, who verifies nothing. */
function isReady(port: number): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    let late = false;
    const options = { host: "127.0.0.1", port, path: "/readyz", agent: false, rejectUnauthorized: false };
    const asked = request({ ...options, timeout: 1_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.once("error", () => resolve(late ? undefined : false));
    asked.once("timeout", () => {
      late = true;
      asked.destroy(new Error("no answer"));
    });
    asked.end();
  });
}
