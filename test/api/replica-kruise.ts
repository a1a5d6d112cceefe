// SPDX-License-Identifier: Apache-2.0
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { KRUISE, type Resource } from "../../kube/api/resource.ts";
import { isServed } from "../../webhook/cluster-state/discovery.ts";
import { eventually } from "../support/eventually.ts";
import { DEFINITIONS } from "./cluster-resources.ts";

/** Defines one of OpenKruise's kinds, without its schema, and waits until it is served. Gives StatefulSet and CloneSet. */
export async function installKruise(
  connection: Connection,
  plural: "statefulsets" | "clonesets",
): Promise<readonly [Resource, Resource]> {
  const [sets, clones] = KRUISE as readonly [Resource, Resource];
  const resource = plural === "statefulsets" ? sets : clones;
  const { group, version, kind } = resource;
  const names = { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` };
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const versions = [{ name: version, served: true, storage: true, schema }];
  const spec = { group, names, scope: "Namespaced", versions };
  await new Client(connection, DEFINITIONS).create({ name: `${plural}.${group}` }, { spec });
  await eventually(
    `${plural} are served`,
    async () => ((await canList(connection, resource)) ? true : undefined),
    30_000,
  );
  return [sets, clones];
}

async function canList(connection: Connection, resource: Resource): Promise<boolean> {
  if (!(await isServed(connection, resource))) return false;
  try {
    await new Client(connection, resource).pages({}, 1).next();
    return true;
  } catch {
    return false;
  }
}
