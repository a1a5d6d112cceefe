// SPDX-License-Identifier: Apache-2.0
// Objects as the API server gives them.
import type { KubeItem } from "../../../../kube/api/resource.ts";
import { keyOf } from "../../codec.ts";
import type { Kind, Records } from "../../store.ts";
import { blockStatusPatch, placeOf, specOf, statusPatch } from "../objects.ts";

export const META = { uid: "u-1", resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z" };

export type Fields = Readonly<Record<string, unknown>>;

/** An object as the API server gives it back: through JSON, and without what merging a null takes away. */
export function itemOf<K extends Kind>(kind: K, record: Records[K], more: Fields = {}): KubeItem {
  const place = placeOf(kind, keyOf(kind, record));
  const status = statusOf(record);
  const object = { metadata: { ...place, ...META }, spec: specOf(kind, record), ...status, ...more };
  return JSON.parse(
    JSON.stringify(object, (key, value) => (value === null && key !== "ttl" ? undefined : value)),
  );
}

function statusOf(record: Records[Kind]): Fields {
  if ("request" in record) return { status: statusPatch(record.status) };
  return "holes" in record && record.status ? { status: blockStatusPatch(record.status) } : {};
}
