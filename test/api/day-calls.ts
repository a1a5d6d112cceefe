// SPDX-License-Identifier: Apache-2.0
// What people and controllers do to objects of a day, by the API server. Whoever is told that it could not be decided asks again.
import { setTimeout as pause } from "node:timers/promises";
import { BerthError } from "../../allocator/base/errors.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import {
  collectionPath,
  itemPath,
  type KubeItem,
  type ObjectName,
  PODS,
  type Resource,
} from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { type Applied, type Json, NAMESPACE_OF_DAY } from "./day-objects.ts";

/** A slow machine answers late; only a definite answer counts. */
const CALL_MS = 60_000;
const ATTEMPTS = 30;
const AGAIN_MS = 1_000;

/** One of these statuses, or it throws. `lost`: those that say, when an answer was lost before, that it was carried out. */
async function patiently(
  connection: Connection,
  what: string,
  call: Call,
  { ok, lost = [] }: { readonly ok: readonly number[]; readonly lost?: readonly number[] },
): Promise<Answer> {
  let last = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0) await pause(AGAIN_MS);
    const answer = await answerTo(connection, call);
    if (typeof answer !== "string") {
      if (ok.includes(answer.status) || (attempt > 0 && lost.includes(answer.status))) return answer;
      last = `${answer.status} ${statusOf(answer.body, answer.status).message}`;
      if (answer.status < 500) break;
    } else last = answer;
  }
  throw new Error(`${what}: ${last}`);
}

async function answerTo(connection: Connection, call: Call): Promise<Answer | string> {
  try {
    return await connection.call({ timeoutMs: CALL_MS, ...call });
  } catch (error) {
    if (error instanceof BerthError && error.code !== "INTERNAL") return error.message;
    throw error;
  }
}

export async function apply(connection: Connection, { resource, name, body }: Applied): Promise<void> {
  const call = creation({ resource, name, body });
  await patiently(connection, `apply ${resource.kind} ${name}`, call, { ok: [201], lost: [409] });
}

/** Makes it once more, as a person who presses the key twice or a restore does: the HTTP status. */
export async function applyAgain(connection: Connection, applied: Applied): Promise<number> {
  const answer = await answerTo(connection, creation(applied));
  return typeof answer === "string" ? 0 : answer.status;
}

function creation({ resource, name, body }: Applied): Call {
  const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
  const metadata = { ...(body["metadata"] as Json | undefined), ...(name === "" ? {} : { name }) };
  const object = { apiVersion, kind: resource.kind, ...body, metadata };
  return { method: "POST", path: collectionPath(resource, NAMESPACE_OF_DAY), body: object };
}

export async function makePod(connection: Connection, body: Json): Promise<void> {
  const call = creation({ resource: PODS, name: "", body });
  await patiently(connection, "make a pod", call, { ok: [201], lost: [409] });
}

/** With its pods, in the background, as `kubectl delete`. */
export async function remove(connection: Connection, resource: Resource, name: string): Promise<void> {
  const options = { propagationPolicy: "Background" };
  await deleteBy(connection, resource, { namespace: NAMESPACE_OF_DAY, name }, options);
}

/** The object is gone at once, as when the kubelet has ended its pod. */
export async function forceDelete(
  connection: Connection,
  resource: Resource,
  place: ObjectName,
  uid: string,
): Promise<void> {
  await deleteBy(connection, resource, place, { gracePeriodSeconds: 0, preconditions: { uid } });
}

async function deleteBy(
  connection: Connection,
  resource: Resource,
  place: ObjectName,
  options: Json,
): Promise<void> {
  const body = { apiVersion: "v1", kind: "DeleteOptions", ...options };
  const call = { method: "DELETE", path: itemPath(resource, place), body } as const;
  const ok = [200, 202, 404, 409]; // 409: another one has the name by now
  await patiently(connection, `delete ${resource.kind} ${place.name}`, call, { ok });
}

/** `kubectl drain` does this. */
export async function evict(connection: Connection, name: string): Promise<void> {
  const path = `${itemPath(PODS, { namespace: NAMESPACE_OF_DAY, name })}/eviction`;
  const metadata = { namespace: NAMESPACE_OF_DAY, name };
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata };
  await patiently(connection, `evict ${name}`, { method: "POST", path, body }, { ok: [201, 404, 409] });
}

/** By a merge patch; what is gone meanwhile is left alone. */
export async function merge(
  connection: Connection,
  resource: Resource,
  name: string,
  change: { readonly spec: Json } | { readonly status: Json; readonly metadata?: Json },
): Promise<void> {
  const subresource = "status" in change ? "/status" : "";
  const path = `${itemPath(resource, { namespace: NAMESPACE_OF_DAY, name })}${subresource}`;
  const call = { method: "PATCH", path, contentType: "application/merge-patch+json", body: change } as const;
  const replaced = "metadata" in change ? [422] : []; // another one of the name is there: "metadata.uid: field is immutable"
  const ok = [200, 404, 409, ...replaced];
  await patiently(connection, `change ${resource.kind} ${name}`, call, { ok });
}

export async function listed(
  connection: Connection,
  resource: Resource,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly KubeItem[]> {
  const namespace = resource.namespaced ? NAMESPACE_OF_DAY : undefined;
  const call = { method: "GET", path: collectionPath(resource, namespace), query } as const;
  const { body } = await patiently(connection, `list ${resource.plural}`, call, { ok: [200] });
  return (body as { items: readonly KubeItem[] }).items;
}

export function phaseOf(pod: KubeItem): string {
  return new Fields(pod).at("status").text("phase");
}

export function hasEnded(pod: KubeItem): boolean {
  return phaseOf(pod) === "Succeeded" || phaseOf(pod) === "Failed";
}

export function appOf({ metadata }: KubeItem): string {
  return metadata.labels?.["app"] ?? "";
}
