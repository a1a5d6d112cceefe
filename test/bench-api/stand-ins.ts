// SPDX-License-Identifier: Apache-2.0
// Kinds of the bench alone: copies of Berth's that nobody watches, and the one object of the models.
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, RESERVATIONS, type Resource, resource } from "../../kube/api/resource.ts";
import { type Definition, define, definitions } from "../api/crds.ts";

const GROUP = "bench.berth.dev";

/** Schema, columns and selectable fields are those of Berth's own kinds. */
export const BARE_RESERVATIONS: Resource = { ...RESERVATIONS, group: GROUP };
export const BARE_CLAIMS: Resource = { ...CLAIMS, group: GROUP };

/** One object for a pool: `spec.allocations` by address. */
export const ALLOCATION_LISTS = resource(
  `${GROUP}/v1alpha1`,
  "AllocationList",
  "allocationlists",
  "namespace",
);

/** Installs them and waits until the API server serves them. */
export async function installStandIns(connection: Connection): Promise<void> {
  const copies = definitions().flatMap(({ metadata, spec }) => {
    const plural = metadata.name.split(".")[0] ?? "";
    if (plural !== RESERVATIONS.plural && plural !== CLAIMS.plural) return [];
    const names = { ...spec.names, shortNames: [], categories: [] };
    return [{ metadata: { name: `${plural}.${GROUP}` }, spec: { ...spec, group: GROUP, names } }];
  });
  await define(connection, [...copies, listDefinition()]);
}

function listDefinition(): Definition {
  const { plural, kind, version } = ALLOCATION_LISTS;
  const text = { type: "string" };
  const allocation = { type: "object", properties: { podRef: text, id: text, ifName: text } };
  const allocations = { type: "object", additionalProperties: allocation };
  const spec = { type: "object", properties: { range: text, allocations } };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const names = { plural, kind, listKind: `${kind}List`, singular: kind.toLowerCase() };
  const versions = [{ name: version, served: true, storage: true, schema }];
  return {
    metadata: { name: `${plural}.${GROUP}` },
    spec: { group: GROUP, scope: "Namespaced", names, versions },
  };
}
