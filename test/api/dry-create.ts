// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import type { Body, Client } from "../../kube/api/client.ts";
import {
  apiVersionOf,
  asItem,
  collectionPath,
  type KubeItem,
  type ObjectName,
} from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";

/** What would be made of the object, or why it is refused for what it is. */
export async function dryCreate(client: Client, place: ObjectName, body: Body): Promise<KubeItem | string> {
  const { resource, connection } = client;
  const answer = await connection.call({
    method: "POST",
    path: collectionPath(resource, place.namespace),
    query: { dryRun: "All", fieldValidation: "Strict" },
    body: { ...body, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: place },
  });
  if (answer.status === 400 || answer.status === 422) return statusOf(answer.body, answer.status).message;
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const object = answer.body as { metadata: object };
  return asItem({ ...object, metadata: { ...object.metadata, resourceVersion: "" } }); // it was never written
}

export async function refuses(client: Client, place: ObjectName, body: Body, words: RegExp): Promise<void> {
  const said = await dryCreate(client, place, body);
  assert.ok(typeof said === "string", `${JSON.stringify(place)} is taken`);
  assert.match(said, words);
}
