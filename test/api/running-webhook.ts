// SPDX-License-Identifier: Apache-2.0
// The webhook with its controllers in this process, registered at an API server, for what its clients get to see.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, noopLogger } from "../../allocator/base/ports.ts";
import { connect } from "../../kube/api/connection.ts";
import { collectionPath, type KubeItem, PODS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { type ClusterWebhook, startWebhook } from "../../webhook/replica.ts";
import { eventually } from "../support/eventually.ts";
import type { Json } from "../support/objects.ts";
import { accountConfig, installAccounts, installPolicies } from "./accounts.ts";
import { installDefinitions } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { writeCertificate } from "./replicas.ts";
import { registerWebhooks } from "./webhooks.ts";

export interface RunningWebhook {
  readonly webhook: ClusterWebhook;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
  close(): Promise<void>;
}

export interface RunningOptions {
  /** Of the webhook; that of this host if absent. */
  readonly clock?: Clock;
  /** Absent: with policies, so that agents alone report. */
  readonly policies?: false;
}

/** With Berth's kinds, accounts and policies. Whoever opens it closes it before the control plane. */
export async function runWebhook(plane: ControlPlane, options: RunningOptions = {}): Promise<RunningWebhook> {
  const admin = plane.connect();
  await installDefinitions(admin);
  await installAccounts(admin);
  const certificates = join(plane.folder, "certificates");
  mkdirSync(certificates);
  const ca = await writeCertificate(certificates);
  const config = await accountConfig(plane, "berth-webhook");
  const connection = connect(config, { clock: createClock(), userAgent: "berth-webhook/test" });
  const webhook = await startWebhook({
    ...{ connection, namespace: "berth-system", podName: "berth-0", certificates },
    ...{ host: "127.0.0.1", port: 0, departMs: 0 },
    ...{ clock: options.clock ?? createClock(), random: createRandom(), log: noopLogger },
  });
  await eventually("it is ready", () => (webhook.ready().ready ? true : undefined), 60_000);
  await registerWebhooks(admin, { url: `https://127.0.0.1:${webhook.address.port}`, ca });
  if (options.policies !== false) await installPolicies(admin);
  const close = async () => {
    await webhook.close();
    connection.close();
  };
  return { webhook, ca, close };
}

/** The pod that the API server makes, or why it does not. */
export async function createPod(
  plane: ControlPlane,
  object: Json,
  namespace: string,
): Promise<KubeItem | string> {
  const metadata = { ...(object["metadata"] as Json), namespace };
  const connection = plane.connect();
  try {
    const path = collectionPath(PODS, namespace);
    const answer = await connection.call({ method: "POST", path, body: { ...object, metadata } });
    return answer.status === 201 ? (answer.body as KubeItem) : statusOf(answer.body, answer.status).message;
  } finally {
    connection.close();
  }
}

/** The pod, which the API server made. */
export async function madePod(plane: ControlPlane, object: Json, namespace: string): Promise<KubeItem> {
  const made = await createPod(plane, object, namespace);
  assert.ok(typeof made !== "string", String(made));
  return made;
}
