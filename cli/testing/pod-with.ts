// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal } from "../../allocator/base/errors.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Json, pod as podObject } from "../../test/support/objects.ts";

export function object(json: Json): KubeObject {
  const read = readObject(json);
  assert.ok(!isRefusal(read));
  return read;
}

export interface PodOptions {
  readonly podIPs?: readonly object[];
  readonly name?: string;
  readonly uid?: string;
  readonly node?: string;
  readonly phase?: string;
  readonly deleting?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: Json;
}

/** Pod mysql-0 on node-b, admitted with claim mysql-0. */
export function podWith(options: PodOptions = {}): KubeObject {
  const { name = "mysql-0", uid = "uid-of-the-next", node = "node-b", phase = "Pending" } = options;
  const annotations = options.annotations ?? { "berth.dev/claim": "mysql-0" };
  const json = podObject(name, { uid, annotations, spec: { nodeName: node, ...options.spec } });
  const metadata = {
    ...(json["metadata"] as Json),
    ...(options.deleting === true ? { deletionTimestamp: "x" } : {}),
  };
  const { podIPs = [] } = options;
  return object({ ...json, metadata, status: { phase, podIPs } });
}
