// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";

/** A kind of object, as its paths name it. */
export interface Resource {
  /** Empty: the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Metadata of an object that the API server gave. */
export interface ItemMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
}

/** An object that the API server gave. What else it has is for its reader to check. */
export interface KubeItem {
  readonly metadata: ItemMeta;
}

/** Where one object is; `namespace` belongs to a namespaced resource alone. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

const REGISTRATION = "admissionregistration.k8s.io/v1";

type Scope = "cluster" | "namespace";

/** `apiVersion` as a manifest has it. */
export function resource(apiVersion: string, kind: string, plural: string, scope: Scope): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { group, version, plural, kind, namespaced: scope === "namespace" };
}

export const POOLS = resource("berth.dev/v1alpha1", "IPPool", "ippools", "cluster");
export const CLAIMS = resource("berth.dev/v1alpha1", "IPClaim", "ipclaims", "namespace");
export const RESERVATIONS = resource("berth.dev/v1alpha1", "IPReservation", "ipreservations", "cluster");
export const BLOCKS = resource("berth.dev/v1alpha1", "IPBlock", "ipblocks", "cluster");

export const PODS = resource("v1", "Pod", "pods", "namespace");
export const NODES = resource("v1", "Node", "nodes", "cluster");
/** Listed when somebody makes a pool, and never watched. */
export const SERVICES = resource("v1", "Service", "services", "namespace");
export const SERVICE_CIDRS = resource("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", "cluster");
export const NAMESPACES = resource("v1", "Namespace", "namespaces", "cluster");
export const SECRETS = resource("v1", "Secret", "secrets", "namespace");
export const EVENTS = resource("events.k8s.io/v1", "Event", "events", "namespace");
export const LEASES = resource("coordination.k8s.io/v1", "Lease", "leases", "namespace");
/** Where the API server finds out whom it asks about an object, and what it trusts. */
export const CONFIGURATIONS: readonly Resource[] = [
  resource(REGISTRATION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "cluster"),
  resource(REGISTRATION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "cluster"),
];

export const STATEFULSETS = resource("apps/v1", "StatefulSet", "statefulsets", "namespace");
export const DEPLOYMENTS = resource("apps/v1", "Deployment", "deployments", "namespace");
/** Read one by one where that is allowed, and never watched. */
export const REPLICASETS = resource("apps/v1", "ReplicaSet", "replicasets", "namespace");
/** Read by berthctl alone. */
export const DAEMONSETS = resource("apps/v1", "DaemonSet", "daemonsets", "namespace");
/** Workloads of Kubernetes itself: always served. */
export const APPS: readonly Resource[] = [STATEFULSETS, DEPLOYMENTS];
/** Read one by one, and never watched. */
export const JOBS = resource("batch/v1", "Job", "jobs", "namespace");
/** OpenKruise's: served where it is installed. */
export const KRUISE: readonly Resource[] = [
  resource("apps.kruise.io/v1beta1", "StatefulSet", "statefulsets", "namespace"),
  resource("apps.kruise.io/v1alpha1", "CloneSet", "clonesets", "namespace"),
];

/** `berth.dev/v1alpha1`, or `v1` of the core group. */
export function apiVersionOf({ group, version }: Resource): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Its kind; with the group for one of another system that Kubernetes has a kind of that name of: StatefulSet.apps.kruise.io. */
export function kindName({ group, kind }: Resource): string {
  const isTwice = APPS.some((own) => own.kind === kind && own.group !== group);
  return isTwice ? `${kind}.${group}` : kind;
}

/** The path of all objects, or of those of one namespace. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const { group, version, plural, namespaced } = resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${plural}`;
}

export function itemPath(resource: Resource, place: ObjectName): string {
  return `${collectionPath(resource, place.namespace)}/${encodeURIComponent(place.name)}`;
}

/** `ipclaims shop/mysql-0`, for messages. */
export function describeObject({ plural }: Resource, { namespace, name }: ObjectName): string {
  return `${plural} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** `namespace/name`, or the name of what has no namespace: the key of an object among those of its resource. */
export function itemKey({ metadata: { namespace, name } }: KubeItem): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Takes JSON for an object. Throws STORE_UNAVAILABLE for anything that no API server answers. */
export function asItem(value: unknown): KubeItem {
  if (isItem(value)) return value;
  throw new BerthError("STORE_UNAVAILABLE", "the API server answered with something that is no object");
}

function isItem(value: unknown): value is KubeItem {
  if (typeof value !== "object" || value === null || !("metadata" in value)) return false;
  const { metadata } = value;
  if (typeof metadata !== "object" || metadata === null) return false;
  return ["name", "uid", "resourceVersion"].every(
    (field) => typeof Object.getOwnPropertyDescriptor(metadata, field)?.value === "string",
  );
}
