// SPDX-License-Identifier: Apache-2.0
// Reviews where an API server keeps the objects.
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, review } from "../../test/support/objects.ts";
import type { World } from "../../test/support/world.ts";
import type { AdmissionContext } from "../admission/admission-context.ts";
import { createHandlers } from "../admission/routes.ts";
import type { AdmissionRequest, AdmissionResponse, Operation, Route } from "../review/admission-review.ts";

export const PIN = { "berth.dev/ips": "10.20.0.70" };

export const POOLS = [
  DB_POOL,
  poolRecord("vault", "10.50.0.0/29", { authorization: "ServiceAccount" }),
  poolRecord("bank", "10.51.0.0/29", { authorization: "ServiceAccount" }),
];

export type Sending = Partial<AdmissionRequest> & {
  readonly operation?: Operation;
  readonly admission?: Partial<AdmissionContext>;
};

export async function send(
  world: World,
  route: Route,
  object: Json,
  over: Sending = {},
): Promise<AdmissionResponse> {
  const { embedded: _, ...admission } = world.admission;
  const { operation = "CREATE", admission: more, ...rest } = over;
  const handler = createHandlers({ ...admission, ...more })[route];
  const response = await handler(review(object, operation, rest), new AbortController().signal);
  await world.settle();
  return response;
}

/** What comes of it in words: nothing, warnings, or a refusal. */
export async function said(world: World, route: Route, object: Json, over: Sending = {}): Promise<string> {
  const response = await send(world, route, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

export function bound({ objects }: World) {
  return {
    pod: objects.pod.bind(objects),
    workload: objects.workload.bind(objects),
    namespace: objects.namespace.bind(objects),
    fenced: objects.fenced.bind(objects),
  };
}
