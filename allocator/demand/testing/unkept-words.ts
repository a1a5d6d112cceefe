// SPDX-License-Identifier: Apache-2.0
// What is said of requests that keep nothing.
import assert from "node:assert/strict";
import { isRefusal } from "../../base/errors.ts";
import type { Labels } from "../../base/ports.ts";
import { readRequest } from "../../manifest/annotations.ts";
import type { Request } from "../../model/address-request.ts";
import { identityOf, type PodMetadata, type PodOwner } from "../../model/identity.ts";
import { notKept } from "../unkept-requests.ts";

export const STICKY = { "berth.dev/sticky": "true" };
export const PINNED = { "berth.dev/ips": "10.20.0.70" };
export const POOL = { "berth.dev/pools": "db" };
export const RETAIN = { ...POOL, "berth.dev/when-deleted": "Retain" };
export const LONGEST_BYTES = 256;

export function requestOf(annotations: Labels): Request {
  const request = readRequest(annotations);
  assert.ok(!isRefusal(request));
  return request;
}

export function owner(kind: string, apiVersion: string, name: string): PodOwner {
  return { apiVersion, kind, name, uid: "uid" };
}

export function origin(over: Partial<PodMetadata>): PodMetadata {
  return { namespace: "shop", name: "", generateName: "", labels: {}, annotations: {}, ...over };
}

/** What is said of a pod. */
export function ofPod(pod: PodMetadata, annotations: Labels): string[] {
  const whose = pod.owner === undefined ? {} : { owner: pod.owner };
  return notKept({ podIdentity: identityOf(pod), request: requestOf(annotations), ...whose });
}
