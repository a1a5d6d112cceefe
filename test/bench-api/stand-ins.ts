// SPDX-License-Identifier: Apache-2.0
// Kinds of the bench alone: copies of Berth's that nobody watches, and the one object of the models.
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, RESERVATIONS, type Resource, resource } from "../../kube/api/resource.ts";
import { DEFINITIONS } from "../api/cluster-resources.ts";
import { definitions } from "../api/crds.ts";

const GROUP = "bench.berth.dev";
const SERVED_MS = 30_000;

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
  const client = new Client(connection, DEFINITIONS);
  const copies = definitions().flatMap(({ metadata, spec }) => {
    const plural = metadata.name.split(".")[0] ?? "";
    if (plural !== RESERVATIONS.plural && plural !== CLAIMS.plural) return [];
    const names = { ...(spec["names"] as object), shortNames: [], categories: [] };
    return [{ plural, spec: { ...spec, group: GROUP, names } }];
  });
  for (const { plural, spec } of [...copies, { plural: ALLOCATION_LISTS.plural, spec: listDefinition() }]) {
    await client.create({ name: `${plural}.${GROUP}` }, { spec });
  }
  const until = performance.now() + SERVED_MS;
  for (const resource of [BARE_RESERVATIONS, BARE_CLAIMS, ALLOCATION_LISTS]) {
    while (!(await isServed(connection, resource))) {
      if (performance.now() > until) throw new Error(`${resource.plural}.${GROUP} are not served`);
      await pause(20);
    }
  }
}

function listDefinition(): object {
  const { plural, kind, version } = ALLOCATION_LISTS;
  const text = { type: "string" };
  const allocation = { type: "object", properties: { podRef: text, id: text, ifName: text } };
  const allocations = { type: "object", additionalProperties: allocation };
  const spec = { type: "object", properties: { range: text, allocations } };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  return {
    group: GROUP,
    scope: "Namespaced",
    names: { plural, kind, listKind: `${kind}List`, singular: kind.toLowerCase() },
    versions: [{ name: version, served: true, storage: true, schema }],
  };
}

async function isServed(connection: Connection, resource: Resource): Promise<boolean> {
  try {
    await new Client(connection, resource).page({}, { limit: 1, next: "" });
    return true;
  } catch {
    return false;
  }
}
