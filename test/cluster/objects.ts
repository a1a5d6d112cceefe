// SPDX-License-Identifier: Apache-2.0
// What the cases apply: namespaces, pools, pods and workloads.
import { BUSYBOX_IMAGE } from "./images.ts";

export type Json = Readonly<Record<string, unknown>>;
type Annotations = Readonly<Record<string, string>>;

const ROUTES = [{ dst: "0.0.0.0/0" }];
/** Of the namespaces that may use the pool `lab`. */
export const TEAM = { team: "lab" };

/** Pools on the pods' bridge. No two cases name the same address. */
export const POOLS: readonly Json[] = [
  pool("lab", {
    ranges: [
      {
        cidr: "10.40.0.0/16",
        from: "10.40.1.1",
        to: "10.40.1.254",
        gateway: "10.40.0.1",
        exclude: ["10.40.1.200-10.40.1.209"],
      },
      { cidr: "fd00:40::/64", from: "fd00:40::100", to: "fd00:40::1ff", gateway: "fd00:40::1" },
    ],
    routes: ROUTES,
    // what the cases name
    reserved: ["10.40.1.1-10.40.1.99", "fd00:40::100-fd00:40::17f"],
    namespaceSelector: { matchLabels: TEAM },
    blockSize: {},
  }),
  pool("foreign", {
    ranges: [{ cidr: "10.40.0.0/16", from: "10.40.2.1", to: "10.40.2.254", gateway: "10.40.0.1" }],
    namespaceSelector: { matchLabels: { team: "somebody-else" } },
    blockSize: {},
  }),
  pool("many", {
    ranges: [{ cidr: "10.40.0.0/16", from: "10.40.8.1", to: "10.40.9.254", gateway: "10.40.0.1" }],
    routes: ROUTES,
    namespaceSelector: { matchLabels: TEAM },
    blockSize: {},
    cooldown: "1s",
    // all pods of a set are scaled away and have their addresses again
    limits: { retention: { perNamespace: 512 } },
  }),
];

export function pool(name: string, spec: Json): Json {
  return { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name }, spec };
}

export function namespace(name: string, labels: Json = TEAM): Json {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

export interface PodOptions {
  readonly annotations?: Annotations;
  readonly labels?: Annotations;
  /** The only node that it may run on. */
  readonly node?: string;
}

export function pod(name: string, options: PodOptions = {}): Json {
  const { annotations = {}, labels = {} } = options;
  return { apiVersion: "v1", kind: "Pod", metadata: { name, annotations, labels }, spec: podSpec(options) };
}

export interface SetOptions extends PodOptions {
  readonly replicas: number;
  /** The ordinal of the first pod. */
  readonly start?: number;
  /** On the object itself, where they do nothing. */
  readonly misplaced?: Annotations;
}

export function statefulSet(
  name: string,
  { replicas, start = 0, misplaced = {}, ...options }: SetOptions,
): Json {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, annotations: misplaced },
    spec: { replicas, serviceName: name, ordinals: { start }, ...template(name, options, spreadOver(name)) },
  };
}

/** A rolling update takes one down before it brings one up: there is no address to spare. */
export function deployment(name: string, { replicas, ...options }: SetOptions): Json {
  const strategy = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name },
    spec: { replicas, strategy, ...template(name, options, spreadOver(name)) },
  };
}

function template(app: string, { annotations = {}, ...options }: PodOptions, spread: Json): Json {
  return {
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app }, annotations }, spec: { ...podSpec(options), ...spread } },
  };
}

/** As evenly over the nodes as can be. */
function spreadOver(app: string): Json {
  const labelSelector = { matchLabels: { app } };
  const topologyKey = "kubernetes.io/hostname";
  const spread = { maxSkew: 1, topologyKey, whenUnsatisfiable: "ScheduleAnyway", labelSelector };
  return { topologySpreadConstraints: [spread] };
}

function podSpec({ node }: PodOptions): Json {
  return {
    terminationGracePeriodSeconds: 1,
    // nothing in here wants a token
    automountServiceAccountToken: false,
    ...(node === undefined ? {} : { nodeSelector: { "kubernetes.io/hostname": node } }),
    containers: [{ name: "main", image: BUSYBOX_IMAGE }],
  };
}
