// SPDX-License-Identifier: Apache-2.0
// The webhook as it runs in a cluster: processes of its own behind one address, registered at the API server.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { call } from "../../webhook/testing/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { compileCache } from "../support/process.ts";
import { programFile } from "../support/programs.ts";
import { accountConfig, installAccounts } from "./accounts.ts";
import { Daemon } from "./daemon.ts";
import { Front } from "./front.ts";
import type { ControlPlane } from "./plane.ts";
import { freePorts } from "./ports.ts";
import { writeCertificate } from "./serving-certificate.ts";
import { registerWebhooks } from "./webhooks.ts";

export const WEBHOOK_MAIN = programFile("webhook/main");
/** When a test gives up on it: a machine with other things to do takes its time. */
const READY_MS = 300_000;

export interface ReplicasOptions {
  /** How many; 1 if absent. */
  readonly count?: number;
  /** Variables beside those of `webhook/config.ts` that every replica needs. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ReplicaProcess {
  /** Its log is `tail()`; it may be killed, paused and started again on the same port. */
  readonly process: Daemon;
  readonly port: number;
  /** All but the file that is run. */
  readonly command: readonly string[];
  /** What its environment is, and nothing else but where node keeps what it compiled. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Replicas of `webhook/main.ts` with the token of their service account, on a control plane that has Berth's kinds.
 * The API server reaches them through one address, as through a Service: a connection goes to one that accepts it.
 */
export class Replicas {
  readonly all: readonly ReplicaProcess[];
  /** `https://127.0.0.1:port` of the address before them, and the authority of their certificate. */
  readonly url: string;
  readonly ca: string;
  readonly #front: Front;

  constructor(all: readonly ReplicaProcess[], front: Front, ca: string) {
    this.all = all;
    this.url = `https://127.0.0.1:${front.port}`;
    this.ca = ca;
    this.#front = front;
  }

  /** Waits until that one says that it is ready. */
  async ready({ process, port }: ReplicaProcess): Promise<void> {
    const look = async () => {
      if (!process.running) throw new Error(`${process.name} ended\n${process.tail()}`);
      return (await readyz(port, this.ca)) === 200 ? true : undefined;
    };
    await eventually(`${process.name} is ready`, look, READY_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${process.tail()}`);
    });
  }

  /** As a Deployment replaces a pod: it is told to end, leaves the Service a moment later, and its successor joins it. */
  async restart(replica: ReplicaProcess): Promise<void> {
    const ended = replica.process.stop("SIGTERM");
    await pause(100);
    this.#front.leave(replica.port);
    await ended;
    replica.process.start();
    await this.ready(replica);
    this.#front.join(replica.port);
  }

  /** The same, and its successor is of another version, or of this one again. */
  async exchange(replica: ReplicaProcess, main = WEBHOOK_MAIN): Promise<void> {
    replica.process.become([...replica.command, main]);
    await this.restart(replica);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map(({ process }) => process.stop("SIGKILL")));
    await this.#front.close();
  }
}

/** The HTTP status of a replica's `/readyz`; undefined when it does not answer. */
export async function readyz(port: number, ca: string): Promise<number | undefined> {
  try {
    const signal = AbortSignal.timeout(2_000);
    return (await call({ port, ca, path: "/readyz", method: "GET", signal })).status;
  } catch {
    return undefined;
  }
}

/** Starts them, waits until they are ready, and registers them. Whoever calls this closes them before the control plane. */
export async function startReplicas(plane: ControlPlane, options: ReplicasOptions = {}): Promise<Replicas> {
  const folder = join(plane.folder, "webhook");
  mkdirSync(folder, { recursive: true });
  const ca = await writeCertificate(folder);
  const kubeconfig = join(folder, "kubeconfig");
  await installAccounts(plane.connect());
  const config = await accountConfig(plane, "berth-webhook");
  writeFileSync(kubeconfig, config.exportConfig(), { mode: 0o600 });
  const ports = await freePorts(options.count ?? 1);
  const all = ports.map((port, n) => {
    const name = `berth-webhook-${n}`;
    const env = {
      BERTH_NAMESPACE: "berth-system",
      BERTH_POD_NAME: name,
      BERTH_HOST: "127.0.0.1",
      BERTH_PORT: String(port),
      BERTH_TLS: folder,
      BERTH_KUBECONFIG: kubeconfig,
      BERTH_DEPART: "100ms",
      ...options.env,
    };
    const variables = Object.entries({ ...compileCache(), ...env }).map(([key, value]) => `${key}=${value}`);
    const command = ["/usr/bin/env", "-i", ...variables, process.execPath];
    const log = join(folder, `${name}.log`);
    return { process: new Daemon(name, [...command, WEBHOOK_MAIN], log), port, command, env };
  });
  const replicas = new Replicas(all, await Front.start(ports), ca);
  try {
    for (const { process } of all) process.start();
    await Promise.all(all.map((replica) => replicas.ready(replica)));
    await registerWebhooks(plane.connect(), replicas);
    return replicas;
  } catch (error) {
    await replicas.close();
    throw error;
  }
}
