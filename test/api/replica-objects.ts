// SPDX-License-Identifier: Apache-2.0
// Objects of a cluster, made and changed as people, the scheduler and kubelet do it.
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  DEPLOYMENTS,
  itemPath,
  type KubeItem,
  NAMESPACES,
  NODES,
  type ObjectName,
  PODS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Makes an object; throws when one of that name is there. */
export async function make(
  connection: Connection,
  resource: Resource,
  place: ObjectName,
  body: Json,
): Promise<KubeItem> {
  const made = await new Client(connection, resource).create(place, body);
  if (made === undefined) throw new Error(`${resource.kind} ${place.name} exists already`);
  return made;
}

/** Changes an object by a merge patch. */
export async function change(
  connection: Connection,
  resource: Resource,
  place: ObjectName,
  body: Json,
): Promise<KubeItem> {
  const changed = await new Client(connection, resource).patch(place, { type: "merge", body });
  if (changed === undefined) throw new Error(`${resource.kind} ${place.name} cannot be changed`);
  return changed;
}

/** Deletes at once, as `kubectl delete --force --grace-period=0`. */
export async function forceDelete(
  connection: Connection,
  resource: Resource,
  place: ObjectName,
): Promise<void> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  const { status } = await connection.call({ method: "DELETE", path: itemPath(resource, place), body });
  if (status !== 200) throw new Error(`${resource.kind} ${place.name} cannot be deleted: ${status}`);
}

interface PodMade {
  readonly node?: string;
  readonly labels?: Json;
  readonly annotations?: Json;
  readonly spec?: Json;
}

export async function makePod(
  connection: Connection,
  place: ObjectName,
  pod: PodMade = {},
): Promise<KubeItem> {
  const { node, labels = {}, annotations = {}, spec } = pod;
  const containers = [{ name: "main", image: "registry.example/app:1" }];
  return await make(connection, PODS, place, {
    metadata: { labels, annotations },
    spec: { containers, ...(node === undefined ? {} : { nodeName: node }), ...spec },
  });
}

export async function makeNode(connection: Connection, name: string): Promise<KubeItem> {
  return await make(connection, NODES, { name }, {});
}

export async function makeNamespace(connection: Connection, name: string, metadata: Json): Promise<KubeItem> {
  return await make(connection, NAMESPACES, { name }, { metadata });
}

interface WorkloadMade {
  readonly replicas?: number;
  /** Of the pod template. */
  readonly annotations?: Json;
  readonly spec?: Json;
}

/** The spec of a StatefulSet or a Deployment. */
export function workloadSpec(
  name: string,
  { replicas = 1, annotations = {}, spec }: WorkloadMade = {},
): Json {
  const labels = { app: name };
  const containers = [{ name: "main", image: "registry.example/app:1" }];
  const template = { metadata: { labels, annotations }, spec: { containers } };
  return { replicas, selector: { matchLabels: labels }, template, ...spec };
}

export async function makeStatefulSet(
  connection: Connection,
  place: ObjectName,
  made: WorkloadMade = {},
): Promise<KubeItem> {
  const spec = { serviceName: place.name, ...workloadSpec(place.name, made) };
  return await make(connection, STATEFULSETS, place, { spec });
}

export async function makeDeployment(
  connection: Connection,
  place: ObjectName,
  made: WorkloadMade = {},
): Promise<KubeItem> {
  return await make(connection, DEPLOYMENTS, place, { spec: workloadSpec(place.name, made) });
}
