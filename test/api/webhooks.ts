// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { parseYaml } from "../support/yaml.ts";

const FOLDER = join(import.meta.dirname, "../../charts/berth/files/webhooks");

export interface Entry {
  readonly name: string;
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly [field: string]: unknown;
}

export interface Configuration {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly Entry[];
}

const KINDS = ["mutating", "validating"] as const;

/** A configuration as the chart has it. */
export function configuration(kind: (typeof KINDS)[number]): Configuration {
  return parseYaml(readFileSync(join(FOLDER, `${kind}.yaml`), "utf8")) as Configuration;
}

function resourceOf(kind: (typeof KINDS)[number]): Resource {
  return {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: `${kind}webhookconfigurations`,
    kind: kind === "mutating" ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration",
    namespaced: false,
  };
}

export interface WebhookAddress {
  /** `https://127.0.0.1:port`, without a path. */
  readonly url: string;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
}

/** Makes or changes the chart's configurations, with a webhook behind that url, and waits until the API server asks it. */
export async function registerWebhooks(connection: Connection, { url, ca }: WebhookAddress): Promise<void> {
  const caBundle = Buffer.from(ca).toString("base64");
  for (const kind of KINDS) {
    const { metadata, webhooks } = configuration(kind);
    const entries = webhooks.map((entry) => ({
      ...entry,
      clientConfig: { url: url + entry.clientConfig.service.path, caBundle },
    }));
    const client = new Client(connection, resourceOf(kind));
    const body = { webhooks: entries };
    if ((await client.create(metadata, body)) === undefined)
      await client.patch(metadata, { type: "merge", body });
  }
  await eventually("the API server asks the webhook", () => isAsked(connection), 30_000);
}

/** Each configuration takes effect by itself, a moment after it was made; what is sent is refused, or a rehearsal. */
async function isAsked(connection: Connection): Promise<true | undefined> {
  const asks = { name: "asks", namespace: "default", annotations: { "berth.dev/ips": "nonsense" } };
  const pod = { metadata: asks, spec: { containers: [{ name: "main", image: "registry.example/app:1" }] } };
  const range = { cidr: "192.0.2.0/24" };
  const pool = { metadata: { name: "asks" }, spec: { ranges: [range, range] } };
  const posts = [
    { path: "/api/v1/namespaces/default/pods", body: { apiVersion: "v1", kind: "Pod", ...pod } },
    {
      path: "/apis/berth.dev/v1alpha1/ippools",
      body: { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", ...pool },
    },
  ];
  for (const { path, body } of posts) {
    const answer = await connection.call({ method: "POST", path, query: { dryRun: "All" }, body });
    const { message = "" } = answer.body as { message?: string };
    if (!message.includes("admission webhook")) return undefined;
  }
  return true;
}
