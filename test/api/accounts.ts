// SPDX-License-Identifier: Apache-2.0
// Berth's service accounts as the chart has them: their roles, the policies, and tokens such as their pods get.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { itemPath, type KubeItem, NODES, PODS, type Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { parseYaml, parseYamlDocuments } from "../support/yaml.ts";
import { ACCOUNTS } from "./cluster-resources.ts";
import { makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { TokenConfig } from "./token-config.ts";

const CHART = join(import.meta.dirname, "../../charts/berth");
const FILES = join(CHART, "files");
export const BERTH_NAMESPACE = "berth-system";
const LIFE_SECONDS = 7_200;

export type Account = "berth-webhook" | "berth-issuer" | "berth-agent";

/** An object as a manifest has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

/** All objects of a folder of the chart's plain manifests. */
export function manifestsOf(folder: "rbac" | "policies"): readonly Manifest[] {
  const names = readdirSync(join(FILES, folder)).filter((name) => name.endsWith(".yaml"));
  return names.sort().flatMap((name) => {
    const text = readFileSync(join(FILES, folder, name), "utf8");
    return parseYamlDocuments(text) as readonly Manifest[];
  });
}

/** The role that the chart has where that value is set, and its binding. */
export function roleWith(value: string): readonly Manifest[] {
  const text = readFileSync(join(CHART, "templates/access.yaml"), "utf8");
  const [, part = ""] = text.split(`{{- if .Values.${value} }}\n`);
  const plain = (part.split("{{- end }}\n")[0] ?? "")
    .replaceAll("{{ .Release.Namespace }}", BERTH_NAMESPACE)
    .replaceAll(/^ *(labels:\n *)?\{\{.*\}\}\n/gm, "");
  const role = parseYamlDocuments(plain).flatMap((document) => (document as Manifest | null) ?? []);
  assert.deepEqual(
    role.map(({ kind }) => kind),
    ["ClusterRole", "ClusterRoleBinding"],
  );
  return role;
}

/** As the chart writes it with its own values: of each system what is not for Berth is left to that one, and no policy asks a claim for it. */
function withChartsChoice(manifest: Manifest): Manifest {
  const spec = manifest["spec"] as { readonly variables?: readonly { readonly expression: string }[] };
  if (manifest.metadata.name !== "pods.berth.dev" || spec.variables === undefined) return manifest;
  const bySystem = parseYaml(readFileSync(join(FILES, "dialects.yaml"), "utf8")) as Record<string, string[]>;
  const keys = Object.values(bySystem).flat();
  const variables = spec.variables.map((one) => {
    const expression = keys.reduce((text, key) => text.replaceAll(`, '${key}'`, ""), one.expression);
    return { ...one, expression };
  });
  return { ...manifest, spec: { ...spec, variables } };
}

/** Where objects of the manifest's kind are: these are kinds whose plural is regular, or ends in -ies. */
export function resourceOfManifest({ apiVersion, kind, metadata }: Manifest): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const plural = kind.endsWith("y") ? `${kind.slice(0, -1).toLowerCase()}ies` : `${kind.toLowerCase()}s`;
  return { group, version, kind, plural, namespaced: metadata.namespace !== undefined };
}

/** Makes the objects that are not there. */
export async function install(connection: Connection, manifests: readonly Manifest[]): Promise<void> {
  for (const manifest of manifests) {
    const { name, namespace } = manifest.metadata;
    const place = namespace === undefined ? { name } : { name, namespace };
    await new Client(connection, resourceOfManifest(manifest)).create(place, manifest);
  }
}

/** The accounts and their roles. A token of theirs is of use from then on. */
export async function installAccounts(connection: Connection): Promise<void> {
  await makeNamespaces(connection, [BERTH_NAMESPACE]);
  await install(connection, manifestsOf("rbac"));
}

const RESERVATION = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "IPReservation",
  metadata: { name: "192.0.2.77" },
  spec: {
    address: "192.0.2.77",
    pool: "asks",
    claim: { namespace: "default", name: "asks" },
    nonce: "asks",
  },
};

/**
 * The policies, all of them or those of these names. All of them are in force afterwards, which takes them a moment.
 * Berth's kinds must be there. `dialects`: the chart's value for each system.
 */
export async function installPolicies(
  connection: Connection,
  names?: readonly string[],
  dialects: "own" | "all" = "own",
): Promise<void> {
  const written = manifestsOf("policies");
  const policies = dialects === "own" ? written.map(withChartsChoice) : written;
  await install(
    connection,
    policies.filter(({ metadata }) => names === undefined || names.includes(metadata.name)),
  );
  if (names !== undefined) return;
  const look = async () => {
    const words = await refusals(connection);
    return words.every((one) => one.includes("denied request")) ? true : undefined;
  };
  await eventually("the policies are in force", look, 30_000);
}

/** What the API server says to objects that one policy each is about. */
async function refusals(connection: Connection): Promise<readonly string[]> {
  const claim = {
    metadata: { name: "asks" },
    spec: { request: { addresses: ["192.0.2.77"] }, admittedAt: "2026-01-01T00:00:00Z" },
  };
  const posts = [
    { path: "/apis/berth.dev/v1alpha1/ipreservations", body: RESERVATION },
    {
      path: "/apis/berth.dev/v1alpha1/namespaces/default/ipclaims",
      body: { apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", ...claim },
    },
    {
      path: "/api/v1/namespaces/default/pods/asks/binding",
      body: {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "asks", annotations: { "berth.dev/claim": "asks" } },
        target: { kind: "Node", name: "asks" },
      },
    },
  ];
  return await Promise.all(
    posts.map(async ({ path, body }) => {
      const answer = await connection.call({ method: "POST", path, query: { dryRun: "All" }, body });
      return (answer.body as { message?: string }).message ?? "";
    }),
  );
}

/** The agent's pod on that node. */
async function agentPod(connection: Connection, account: Account, node: string): Promise<KubeItem> {
  const name = `${account}-${node}`;
  const place = { namespace: BERTH_NAMESPACE, name };
  const pods = new Client(connection, PODS);
  await new Client(connection, NODES).create({ name: node }, {});
  const containers = [{ name: "main", image: "registry.example/berth:1" }];
  const spec = { serviceAccountName: account, containers, nodeName: node, hostNetwork: true };
  return (await pods.create(place, { spec })) ?? (await pods.get(place)) ?? assert.fail(`no pod ${name}`);
}

/**
 * How the account reaches the API server. With a node, as its pod on that node does: by a token that is bound to the pod
 * and so names the node. Both are made if they are not there.
 */
export async function accountConfig(
  plane: ControlPlane,
  account: Account,
  node?: string,
): Promise<TokenConfig> {
  const connection = plane.connect();
  const pod = node === undefined ? undefined : await agentPod(connection, account, node);
  const bound =
    pod === undefined
      ? {}
      : { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: pod.metadata.name, uid: pod.metadata.uid } };
  const answer = await connection.call({
    method: "POST",
    path: `${itemPath(ACCOUNTS, { namespace: BERTH_NAMESPACE, name: account })}/token`,
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: LIFE_SECONDS, ...bound },
    },
  });
  const { token } = (answer.body as { status?: { token?: string } }).status ?? {};
  assert.ok(token, `no token for ${account}: ${JSON.stringify(answer.body)}`);
  return new TokenConfig({ server: plane.url, ca: plane.ca, user: account, token });
}

/** A connection of the account, such as accountConfig says, closed with the control plane. */
export async function connectAs(plane: ControlPlane, account: Account, node?: string): Promise<Connection> {
  return plane.connectWith(await accountConfig(plane, account, node));
}
