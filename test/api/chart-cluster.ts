// SPDX-License-Identifier: Apache-2.0
// A release of the chart on a control plane without kubelets: the webhook's pod is a process with the pod's environment,
// behind the chart's own Service, and what the release leaves of the cluster is looked at.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, type KubeItem, POOLS, RESERVATIONS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { compileCache } from "../support/process.ts";
import { accountConfig, type Manifest } from "./accounts.ts";
import { type Container, templateOf } from "./chart-manifests.ts";
import { ENDPOINT_SLICES } from "./cluster-resources.ts";
import { Daemon } from "./daemon.ts";
import { startControlPlane } from "./harness.ts";
import type { ControlPlane } from "./plane.ts";
import { freePort } from "./ports.ts";
import { WEBHOOK_MAIN } from "./replicas.ts";
import { issuerProcess } from "./rolling-webhook.ts";

const NAMESPACE = "berth-system";
const KINDS = ["mutating", "validating"] as const;
const SOON_MS = 60_000;

/**
 * A control plane that reaches a webhook behind a Service by the address of its endpoint. None of those that are shared: one
 * that does knows no Services of the type ExternalName, which other tests have.
 */
export async function startChartPlane(): Promise<ControlPlane> {
  return await startControlPlane({ apiServerFlags: ["--enable-aggregator-routing=true"] });
}

export async function get(plane: ControlPlane, path: string): Promise<Manifest | undefined> {
  const answer = await plane.connect().call({ method: "GET", path });
  if (answer.status === 404) return undefined;
  assert.equal(answer.status, 200, path);
  return answer.body as Manifest;
}

/** Webhook and issuer as the Deployments' pods run them, on this host. */
export class WebhookPod {
  readonly #process: Daemon;
  readonly #issuer: Daemon;

  private constructor(process: Daemon, issuer: Daemon) {
    this.#process = process;
    this.#issuer = issuer;
  }

  /** Starts it in the place of the release's pods, and waits until the API server trusts and reaches it. */
  static async start(plane: ControlPlane, name: string): Promise<WebhookPod> {
    const address = addressOfThisHost();
    const port = await freePort(address);
    const kubeconfig = join(plane.folder, `${name}.kubeconfig`);
    writeFileSync(kubeconfig, (await accountConfig(plane, "berth-webhook")).exportConfig(), { mode: 0o600 });
    const container = await containerOf(plane, "berth-webhook");
    const maker = await containerOf(plane, "berth-issuer");
    const issuer = await issuerProcess(plane, plane.folder, environmentOf(maker, "berth-issuer"));
    const env = {
      ...environmentOf(container, name),
      ...{
        BERTH_KUBECONFIG: kubeconfig,
        BERTH_HOST: address,
        BERTH_PORT: String(port),
        BERTH_DEPART: "100ms",
      },
    };
    const variables = Object.entries({ ...compileCache(), ...env }).map(([key, value]) => `${key}=${value}`);
    const command = ["/usr/bin/env", "-i", ...variables, process.execPath, WEBHOOK_MAIN];
    const pod = new WebhookPod(new Daemon(name, command, join(plane.folder, `${name}.log`)), issuer);
    try {
      await pod.#serve(plane, container, { host: address, port });
      return pod;
    } catch (error) {
      await pod.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#process, this.#issuer].map((process) => process.stop("SIGKILL")));
  }

  /** While the work is done they stand still, and put nothing right. */
  async paused(work: () => Promise<void>): Promise<void> {
    for (const process of [this.#process, this.#issuer]) process.pause();
    try {
      await work();
    } finally {
      for (const process of [this.#process, this.#issuer]) process.resume();
    }
  }

  async #serve(plane: ControlPlane, container: Container, at: { host: string; port: number }): Promise<void> {
    for (const process of [this.#issuer, this.#process]) process.start();
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
      const path = container[probe]?.httpGet?.path ?? assert.fail(`no ${probe}`);
      await this.#until(`${probe} succeeds`, async () => (await statusOf(at, path)) === 200);
    }
    await publish(plane, at);
    await this.#until("the API server asks the webhook", async () => {
      const isTrusted = (await caBundles(plane)).every((bundle) => bundle !== "");
      return isTrusted && (await isAsked(plane));
    });
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const look = async () => {
      if (!this.#process.running) throw new Error("the webhook ended");
      return (await holds()) ? true : undefined;
    };
    await eventually(what, look, SOON_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.#process.tail()}`);
    });
  }
}

async function containerOf(plane: ControlPlane, name: string): Promise<Container> {
  const deployment = await get(plane, `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${name}`);
  assert.ok(deployment);
  return templateOf(deployment).spec.containers[0] ?? assert.fail("no container");
}

/** Everything that the container is given. */
function environmentOf({ env }: Container, name: string): Readonly<Record<string, string>> {
  const fields: Readonly<Record<string, string>> = { BERTH_NAMESPACE: NAMESPACE, BERTH_POD_NAME: name };
  return Object.fromEntries(env.map((v) => [v.name, v.value ?? fields[v.name] ?? assert.fail(v.name)]));
}

/** Asks as the kubelet probes: it trusts every certificate. Undefined: no answer. */
async function statusOf(at: { host: string; port: number }, path: string): Promise<number | undefined> {
  const asked = request({ ...at, path, rejectUnauthorized: false, agent: false, timeout: 2_000 }).end();
  try {
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  } catch {
    return undefined;
  } finally {
    asked.destroy();
  }
}

/** What the endpoint controller does for the pods of the Service. */
async function publish(plane: ControlPlane, { host, port }: { host: string; port: number }): Promise<void> {
  const slices = new Client(plane.connect(), ENDPOINT_SLICES);
  const place = { namespace: NAMESPACE, name: "berth-webhook-test" };
  const body = {
    metadata: { labels: { "kubernetes.io/service-name": "berth-webhook" } },
    addressType: "IPv4",
    endpoints: [{ addresses: [host], conditions: { ready: true } }],
    ports: [{ name: "https", port, protocol: "TCP" }],
  };
  if ((await slices.create(place, body)) === undefined) await slices.patch(place, { type: "merge", body });
}

/** No endpoint may be on loopback. */
function addressOfThisHost(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const own = all.find(({ family, internal }) => family === "IPv4" && !internal);
  return (
    own?.address ??
    assert.fail("this host has no address but loopback, and a Service leads to none on loopback")
  );
}

/** A rehearsal that only the webhook can refuse. */
async function isAsked(plane: ControlPlane): Promise<boolean> {
  const metadata = { name: "asks", annotations: { "berth.dev/ips": "nonsense" } };
  const spec = { containers: [{ name: "main", image: "registry.example/app:1" }] };
  const answer = await plane.connect().call({
    method: "POST",
    path: "/api/v1/namespaces/default/pods",
    query: { dryRun: "All" },
    body: { apiVersion: "v1", kind: "Pod", metadata, spec },
  });
  return String((answer.body as { message?: string }).message).includes("denied the request");
}

/** The caBundle of each entry of both configurations, empty where there is none. */
export async function caBundles(plane: ControlPlane): Promise<readonly string[]> {
  const all = await Promise.all(
    KINDS.map((kind) =>
      get(plane, `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations/berth`),
    ),
  );
  return all.flatMap((configuration) => {
    const { webhooks } = configuration as unknown as { webhooks: { clientConfig: { caBundle?: string } }[] };
    return webhooks.map(({ clientConfig }) => clientConfig.caBundle ?? "");
  });
}

/** What the issuer keeps in its Secrets; undefined where they are not there. */
export async function secretData(plane: ControlPlane): Promise<unknown> {
  const path = `/api/v1/namespaces/${NAMESPACE}/secrets`;
  const [authority, served] = await Promise.all(
    ["ca", "tls"].map(async (name) => (await get(plane, `${path}/berth-webhook-${name}`))?.["data"]),
  );
  return authority === undefined && served === undefined ? undefined : { authority, served };
}

/** Every record of Berth, without what controllers report of it. */
export async function records(plane: ControlPlane): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (const resource of [POOLS, CLAIMS, RESERVATIONS]) {
    const client = new Client(plane.connect(), resource);
    for await (const { items } of client.pages({}, 500)) found.push(...items.map(recordOf));
  }
  return found;
}

function recordOf(item: KubeItem): unknown {
  const { name, namespace, uid, finalizers } = item.metadata;
  return { name, namespace, uid, finalizers, spec: (item as KubeItem & { spec: unknown }).spec };
}
