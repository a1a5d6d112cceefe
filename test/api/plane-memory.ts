// SPDX-License-Identifier: Apache-2.0
// What an API server remembers of objects that are gone: whom it asks, what it allows, which namespaces there are. It
// hears of changes in their order, so what is made after the others were removed, and works, and is removed, and works no
// more, shows that the others are forgotten too.
import { Client } from "../../kube/api/client.ts";
import type { Answer, Connection } from "../../kube/api/connection.ts";
import type { KubeItem, Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  MUTATING_WEBHOOKS,
  POLICIES,
  POLICY_BINDINGS,
  VALIDATING_WEBHOOKS,
} from "./cluster-resources.ts";
import type { ControlPlane } from "./plane.ts";

const SOON_MS = 60_000;

type Body = Readonly<Record<string, unknown>>;

/** One kind of memory: what tests it, and whether that is at work. */
interface Probe {
  /** Keys of etcd whose objects are remembered so. */
  readonly keys: readonly string[];
  readonly objects: readonly { readonly resource: Resource; readonly body: Body }[];
  isAtWork(connection: Connection): Promise<boolean>;
}

const CONFIG_MAPS_CREATED = {
  apiGroups: [""],
  apiVersions: ["v1"],
  operations: ["CREATE"],
  resources: ["configmaps"],
};

/** Every probe has names of its own, by which nothing of an earlier one is taken for it. */
function probes(name: string): readonly Probe[] {
  return [
    webhookProbe("mutating", MUTATING_WEBHOOKS, name),
    webhookProbe("validating", VALIDATING_WEBHOOKS, name),
    policyProbe(name),
    roleProbe(name),
  ];
}

/** Nobody listens there. */
function webhookProbe(kind: string, resource: Resource, name: string): Probe {
  const own = `${kind}-${name}`;
  const webhook = {
    name: `${own}.test.berth.dev`,
    clientConfig: { url: "https://127.0.0.1:1/" },
    failurePolicy: "Fail",
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    timeoutSeconds: 1,
    rules: [CONFIG_MAPS_CREATED],
    objectSelector: { matchLabels: { probe: own } },
  };
  return {
    keys: [`/registry/${resource.plural}/`],
    objects: [{ resource, body: { metadata: { name: own }, webhooks: [webhook] } }],
    isAtWork: async (connection) => (await rehearse(connection, "default", own)).status >= 400,
  };
}

function policyProbe(name: string): Probe {
  const own = `policy-${name}`;
  const matchConstraints = {
    resourceRules: [CONFIG_MAPS_CREATED],
    objectSelector: { matchLabels: { probe: own } },
  };
  return {
    keys: ["/registry/validatingadmissionpolicies/", "/registry/validatingadmissionpolicybindings/"],
    objects: [
      {
        resource: POLICIES,
        body: {
          metadata: { name: own },
          spec: { failurePolicy: "Fail", matchConstraints, validations: [{ expression: "false" }] },
        },
      },
      {
        resource: POLICY_BINDINGS,
        body: { metadata: { name: own }, spec: { policyName: own, validationActions: ["Deny"] } },
      },
    ],
    isAtWork: async (connection) => (await rehearse(connection, "default", own)).status >= 400,
  };
}

function roleProbe(name: string): Probe {
  const own = `role-${name}`;
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }];
  const roleRef = { apiGroup: CLUSTER_ROLES.group, kind: "ClusterRole", name: own };
  const subjects = [{ apiGroup: CLUSTER_ROLES.group, kind: "User", name: own }];
  return {
    keys: [
      "/registry/clusterroles/",
      "/registry/clusterrolebindings/",
      "/registry/roles/",
      "/registry/rolebindings/",
    ],
    objects: [
      { resource: CLUSTER_ROLES, body: { metadata: { name: own }, rules } },
      { resource: CLUSTER_ROLE_BINDINGS, body: { metadata: { name: own }, roleRef, subjects } },
    ],
    isAtWork: async (connection) => {
      const resourceAttributes = { verb: "get", resource: "configmaps", namespace: "default" };
      const answer = await connection.call({
        method: "POST",
        path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SubjectAccessReview",
          spec: { user: own, resourceAttributes },
        },
      });
      return (answer.body as { status: { allowed: boolean } }).status.allowed;
    },
  };
}

async function rehearse(connection: Connection, namespace: string, label: string): Promise<Answer> {
  return await connection.call({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/configmaps`,
    query: { dryRun: "All" },
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "probe", labels: { probe: label } } },
  });
}

/** Waits until the API server remembers nothing of what stood under these keys and is there no more. */
export async function forgotten(plane: ControlPlane, keys: readonly string[], run: number): Promise<void> {
  const connection = plane.connect();
  const concerned = probes(String(run)).filter((probe) =>
    probe.keys.some((prefix) => keys.some((key) => key.startsWith(prefix))),
  );
  const namespaces = keys.flatMap((key) => /^\/registry\/namespaces\/(.*)$/.exec(key)?.[1] ?? []);
  try {
    await Promise.all([
      ...concerned.map((probe) => works(connection, probe)),
      ...namespaces.map((name) => isGone(connection, name)),
    ]);
  } finally {
    connection.close();
  }
}

async function works(connection: Connection, probe: Probe): Promise<void> {
  const made: { readonly client: Client; readonly item: KubeItem }[] = [];
  for (const { resource, body } of probe.objects) {
    const client = new Client(connection, resource);
    const item = await client.create(body["metadata"] as { readonly name: string }, body);
    if (item === undefined) throw new Error(`a probe is there already: ${JSON.stringify(body["metadata"])}`);
    made.push({ client, item });
  }
  await eventually("a probe works", async () => (await probe.isAtWork(connection)) || undefined, SOON_MS);
  for (const { client, item } of made.reverse()) await client.remove(item.metadata, item.metadata);
  const ends = async () => ((await probe.isAtWork(connection)) ? undefined : true);
  await eventually("a probe works no more", ends, SOON_MS);
}

async function isGone(connection: Connection, namespace: string): Promise<void> {
  const look = async () => (await rehearse(connection, namespace, "")).status === 404 || undefined;
  await eventually(`namespace ${namespace} is forgotten`, look, SOON_MS);
}
