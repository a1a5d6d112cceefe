// SPDX-License-Identifier: Apache-2.0
// The webhook with its controllers in this process, registered at an API server, for what its clients get to see.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, noopLogger } from "../../allocator/base/ports.ts";
import { collectionPath, type KubeItem, PODS } from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { type ClusterWebhook, startWebhook } from "../../webhook/replica.ts";
import { call, podReview } from "../../webhook/testing/api-server.ts";
import { eventually } from "../support/eventually.ts";
import type { Json } from "../support/objects.ts";
import { connectAs, installAccounts, installPolicies } from "./accounts.ts";
import { installDefinitions } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { writeCertificate } from "./serving-certificate.ts";
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
  /** May it read ReplicaSets? */
  readonly checkOwners?: true;
}

/** With Berth's kinds, accounts and policies. Whoever opens it closes it before the control plane. */
export async function runWebhook(plane: ControlPlane, options: RunningOptions = {}): Promise<RunningWebhook> {
  const admin = plane.connect();
  await installDefinitions(admin);
  await installAccounts(admin);
  const certificates = join(plane.folder, "certificates");
  mkdirSync(certificates);
  const ca = await writeCertificate(certificates);
  const connection = await connectAs(plane, "berth-webhook");
  const { clock = createClock(), policies, ...more } = options;
  const webhook = await startWebhook({
    ...{ connection, namespace: "berth-system", podName: "berth-0", certificates },
    ...{ host: "127.0.0.1", port: 0, departMs: 0, ...more },
    ...{ clock, random: createRandom(), log: noopLogger },
  });
  await eventually("it is ready", () => (webhook.ready().ready ? true : undefined), 60_000);
  await registerWebhooks(admin, { url: `https://127.0.0.1:${webhook.address.port}`, ca });
  if (policies !== false) await installPolicies(admin);
  return { webhook, ca, close: () => webhook.close() };
}

interface Answered {
  readonly allowed: boolean;
  readonly status?: { readonly message: string };
  readonly patch?: string;
}

/** What the webhook answers to a review that no API server sent, of the creation of that pod; `uid` is the review's. */
export async function forge(
  { webhook, ca }: RunningWebhook,
  object: Json,
  uid = "forged",
): Promise<{ readonly text: string; readonly response: Answered }> {
  const { name = "", namespace = "shop" } = object["metadata"] as Partial<KubeItem["metadata"]>;
  const body = JSON.stringify(podReview({ name, namespace, object, uid }));
  const reply = await call({ port: webhook.address.port, ca, path: "/mutate/pods", body });
  assert.equal(reply.status, 200);
  return { text: reply.text, response: (JSON.parse(reply.text) as { response: Answered }).response };
}

/** The same: the words of a refusal, or "" for a pod that was admitted. */
export async function forgedWords(...review: Parameters<typeof forge>): Promise<string> {
  const { response } = await forge(...review);
  return response.allowed ? "" : (response.status?.message ?? "refused");
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
