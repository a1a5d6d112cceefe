// SPDX-License-Identifier: Apache-2.0
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { apiVersionOf, type Resource } from "../../kube/api/resource.ts";
import { toBerthError } from "../../kube/api/status.ts";

/** Whether the API server has the resource at this moment. Throws what a Connection throws, and STORE_UNAVAILABLE when it does not say. */
export async function isServed(connection: Connection, resource: Resource): Promise<boolean> {
  const list = await ask(connection, `/apis/${apiVersionOf(resource)}`);
  const resources = list?.list("resources") ?? [];
  return resources.some((entry) => new Fields(entry).text("name") === resource.plural);
}

/** Whether the API server has the resource's group, in any version. Throws as `isServed` does. */
export async function isGroupServed(connection: Connection, { group }: Resource): Promise<boolean> {
  return (await ask(connection, `/apis/${group}`)) !== undefined;
}

/** An API server that is starting up answers 503 for paths that it does not have yet, so that 404 means what it says. */
async function ask(connection: Connection, path: string): Promise<Fields | undefined> {
  const answer = await connection.call({ method: "GET", path });
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw toBerthError(answer, `list what ${path} has`);
  return new Fields(answer.body);
}
