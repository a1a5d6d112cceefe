// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { MUTATING_WEBHOOKS } from "../api/cluster-resources.ts";
import { makeNamespaces } from "../api/crds.ts";
import { Front } from "../api/front.ts";
import { startReplicas } from "../api/replicas.ts";
import { Server } from "../bench/running-stack.ts";
import { eventually } from "../support/eventually.ts";
import type { ApiSetup } from "./api-setup.ts";
import { type Histogram, readHistogram } from "./histogram.ts";
import { openPlane, type Plane } from "./plane.ts";
import { PodCreator } from "./pod-creator.ts";

const NOOP = fileURLToPath(new URL("../bench/noop-webhook.ts", import.meta.url));
/** Pods of this namespace are shown to the no-op webhook. */
export const NOOP_NAMESPACE = "noop";
const NOOP_NAME = "pods.noop.dev";
/** Also namespace.pods.berth.dev: one of them is asked. */
const BERTH_NAME = "pods.berth.dev";
const METRIC = "apiserver_admission_webhook_admission_duration_seconds";
/** Those of the chart's Deployment. */
const REPLICAS = 2;

/** An API server that asks two replicas of the webhook, each a process of its own, as the chart has it ask them. */
export async function openAdmissionPlane(setup: ApiSetup, taken: number): Promise<Plane> {
  const plane = await openPlane(setup, taken);
  await makeNamespaces(plane.connection, ["berth-system", NOOP_NAMESPACE]);
  const env = { BERTH_LOG_LEVEL: "error" };
  const replicas = await startReplicas(plane.control, { count: REPLICAS, env });
  setup.defer(() => replicas.close());
  return plane;
}

/** Another process that says yes to every pod of a namespace of its own. */
export async function addNoopWebhook(setup: ApiSetup, { connection }: Plane): Promise<void> {
  const folder = setup.room();
  const { server, line } = await Server.start(process.execPath, [NOOP, folder]);
  setup.defer(() => server.end("SIGKILL"));
  // as far from the API server as Berth is
  const front = await Front.start([Number(line)]);
  setup.defer(() => front.close());
  const caBundle = Buffer.from(await readFile(join(folder, "ca.crt"))).toString("base64");
  const key = "kubernetes.io/metadata.name";
  const webhook = {
    name: NOOP_NAME,
    clientConfig: { url: `https://127.0.0.1:${front.port}/mutate/pods`, caBundle },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    namespaceSelector: { matchExpressions: [{ key, operator: "In", values: [NOOP_NAMESPACE] }] },
    failurePolicy: "Fail",
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  };
  await new Client(connection, MUTATING_WEBHOOKS).create({ name: "noop" }, { webhooks: [webhook] });
  const creator = new PodCreator(connection, NOOP_NAMESPACE);
  let tries = 0;
  await eventually("the API server asks the no-op webhook", async () => {
    const name = `asks-${tries++}`;
    await creator.make(name, {});
    await creator.remove([name]);
    return (await admissionTimes(connection, "noop")).mutating.count > 0 ? true : undefined;
  });
}

/** What the API server has waited for a webhook's word about pods to be created, by its own clock. */
export interface AdmissionTimes {
  readonly mutating: Histogram;
  /** The no-op webhook is not asked again. */
  readonly validating: Histogram;
}

/** So far, since the API server started. */
export async function admissionTimes(
  connection: Connection,
  whose: "berth" | "noop",
): Promise<AdmissionTimes> {
  const { body } = await connection.call({ method: "GET", path: "/metrics" });
  const name = whose === "noop" ? NOOP_NAME : BERTH_NAME;
  const read = (type: string) =>
    readHistogram(String(body), METRIC, (labels) => {
      const { operation, type: found, name: webhook = "" } = labels;
      return operation === "CREATE" && found === type && webhook.endsWith(name);
    });
  return { mutating: read("admit"), validating: read("validating") };
}
