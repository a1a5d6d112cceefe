// SPDX-License-Identifier: Apache-2.0
// Sends objects through the handlers of a world's admission, without HTTP.

import { createHandlers } from "../../webhook/admission/routes.ts";
import type {
  AdmissionRequest,
  AdmissionResponse,
  Operation,
  Route,
} from "../../webhook/review/admission-review.ts";

import { annotationsOf, applied, deniedAs, type Json, review } from "./objects.ts";
import type { World } from "./world.ts";

/** The answer of a route, when the cache has seen what came of it. */
export async function send(
  world: World,
  route: Route,
  object: Json,
  over: Partial<AdmissionRequest> & { readonly operation?: Operation } = {},
): Promise<AdmissionResponse> {
  const handler = createHandlers(world.admission)[route];
  const { operation = "CREATE", ...rest } = over;
  const response = await handler(review(object, operation, rest), new AbortController().signal);
  await world.settle();
  return response;
}

/** A pod through `/mutate/pods`: its assigned addresses, "" when it was let through untouched, or "CODE: message". */
export async function admitPod(world: World, object: Json): Promise<string> {
  const response = await send(world, "/mutate/pods", object);
  if (!response.allowed) return deniedAs(response);
  return annotationsOf(applied(object, response))["berth.dev/addresses"] ?? "";
}

/** A pod through both webhooks, as the embedded stack sees it; its name and uid are final now. */
export async function createPod(
  world: World,
  object: Json,
  name: string,
  uid = `uid-of-${name}`,
): Promise<Json> {
  const mutated = applied(object, await send(world, "/mutate/pods", object));
  const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), name, uid } };
  const response = await send(world, "/validate/pods", made);
  if (!response.allowed) throw new Error(deniedAs(response));
  return made;
}
