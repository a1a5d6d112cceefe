// SPDX-License-Identifier: Apache-2.0
// Every kind of workload that a day in a cluster has.
import {
  DAEMONSETS,
  DEPLOYMENTS,
  JOBS,
  REPLICASETS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { CRON_JOBS } from "./cluster-resources.ts";

export type Json = Readonly<Record<string, unknown>>;

export const NAMESPACE_OF_DAY = NAMESPACE;

/** An object that people apply, and apply again after they or a disaster took it away. */
export interface Applied {
  readonly resource: Resource;
  readonly name: string;
  readonly body: Json;
  /** Of its spec; undefined where there is nothing to scale. */
  readonly replicas?: number;
  /** It has a template whose change replaces its pods, or those that somebody deletes. */
  readonly rolls?: true;
}

const POOL = { "berth.dev/pools": "day" };
/** Told to the kubelet that is played: its addresses never change, whatever happens to the pod and to whoever owns it. */
export const KEEPS = "day/keeps";
/** Its container ends by itself, and each so many of a node fail. */
export const ENDS = "day/ends";
export const FAILS = "day/fails";

function template(name: string, annotations: Json, spec: Json = {}): Json {
  const containers = [{ name: "main", image: "registry.example/app:1" }];
  const tolerations = [{ operator: "Exists" }];
  return { metadata: { labels: { app: name }, annotations }, spec: { containers, tolerations, ...spec } };
}

type Replicated = Json & { readonly replicas: number; readonly annotations?: Json };

function replicated(
  resource: Resource,
  name: string,
  { replicas, annotations = POOL, ...more }: Replicated,
): Applied {
  const selector = { matchLabels: { app: name } };
  const spec = { replicas, selector, template: template(name, annotations), ...more };
  const rolls = resource.kind === "ReplicaSet" ? {} : { rolls: true as const };
  return { resource, name, body: { spec }, replicas, ...rolls };
}

function set(name: string, { replicas, ...more }: Replicated): Applied {
  return replicated(STATEFULSETS, name, { replicas, serviceName: name, ...more });
}

function job(name: string, spec: Json, annotations: Json = {}): Applied {
  const ends = template(name, { ...POOL, [ENDS]: "yes", ...annotations }, { restartPolicy: "Never" });
  return { resource: JOBS, name, body: { spec: { template: ends, backoffLimit: 10_000, ...spec } } };
}

/** So many addresses of pool `set`, from its block of that number on. */
function ips(block: number, count: number): Json {
  const list = Array.from(
    { length: count },
    (_, i) => `10.61.${2 * block + Math.floor(i / 200)}.${10 + (i % 200)}`,
  );
  return { "berth.dev/ips": list.join(";") };
}

const PARALLEL = { podManagementPolicy: "Parallel" };

function statefulSets(n: (count: number) => number): readonly Applied[] {
  const kept = { ...POOL, "berth.dev/when-deleted": "Retain", [KEEPS]: "yes" };
  const partition = { type: "RollingUpdate", rollingUpdate: { partition: n(1) } };
  return [
    set("ordered", { replicas: n(2) }),
    set("parallel", { replicas: n(4), annotations: kept, ...PARALLEL }),
    set("started", { replicas: n(2), annotations: ips(0, n(2)), ordinals: { start: 5 } }),
    set("staged", { replicas: n(2), updateStrategy: partition, ...PARALLEL }),
    set("by-hand", { replicas: n(2), updateStrategy: { type: "OnDelete" }, ...PARALLEL }),
  ];
}

function deployments(n: (count: number) => number): readonly Applied[] {
  const surge = Math.ceil(n(2) / 4);
  const recreate = { strategy: { type: "Recreate" } };
  return [
    replicated(DEPLOYMENTS, "by-set", { replicas: n(2), annotations: ips(1, n(3) + surge) }),
    replicated(DEPLOYMENTS, "recreated", { replicas: n(1), annotations: ips(2, n(1)), ...recreate }),
    replicated(DEPLOYMENTS, "by-pool", { replicas: n(4) }),
    replicated(DEPLOYMENTS, "sticky", {
      replicas: n(3),
      annotations: { ...POOL, "berth.dev/sticky": "true" },
    }),
  ];
}

/** Kinds of every sort, `scale` times as many pods as in the least day. */
export function workloads(scale: number): readonly Applied[] {
  const n = (count: number) => count * scale;
  const daemon = { selector: { matchLabels: { app: "daemon" } }, template: template("daemon", POOL) };
  const minutely = { schedule: "* * * * *", jobTemplate: { spec: job("minutely", {}).body["spec"] } };
  return [
    ...statefulSets(n),
    ...deployments(n),
    replicated(REPLICASETS, "bare", { replicas: n(3) }),
    { resource: DAEMONSETS, name: "daemon", body: { spec: daemon }, rolls: true },
    job("plain", { completions: n(3), parallelism: n(2) }),
    job("indexed", { completions: n(3), parallelism: n(2), completionMode: "Indexed" }, { [FAILS]: "3" }),
    { resource: CRON_JOBS, name: "minutely", body: { spec: minutely } },
  ];
}

/** Pods that nobody makes again but people: some with a name, which keep their addresses for it, and others of one sort. */
export function pods(scale: number): readonly { readonly metadata: Json; readonly spec: Json }[] {
  const spec = template("pods", {})["spec"] as Json;
  const labels = { app: "pods" };
  const sticky = { ...POOL, "berth.dev/sticky": "true", [KEEPS]: "yes" };
  return [
    ...namesOf(scale).map((name) => ({ metadata: { name, labels, annotations: sticky }, spec })),
    ...Array.from({ length: 3 * scale }, () => ({
      metadata: { generateName: GENERATED, labels, annotations: POOL },
      spec,
    })),
  ];
}

export const GENERATED = "generated-";

export function namesOf(scale: number): readonly string[] {
  return Array.from({ length: 3 * scale }, (_, i) => `named-${i}`);
}
