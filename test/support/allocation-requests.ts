// SPDX-License-Identifier: Apache-2.0
// Complete allocation requests of identities, as admission makes them.

import { type AllocationInput, requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { Request } from "../../allocator/model/address-request.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import { addr, applicantOf, granted, namespaceFacts } from "./fixtures.ts";
import type { World } from "./world.ts";

/** Entries as they stand in an annotation: pods apart by ";", families by ",". */
export function entries(list: string): Request {
  return { entries: list.split(";").map((entry) => entry.split(",").map((text) => addr(text))) };
}

type Over = Partial<Pick<AllocationInput, "start" | "podLabels" | "namespace" | "podIdentity">>;

function applying(world: World, podIdentity: PodIdentity, request: Request, over: Over): AllocationInput {
  return applicantOf({
    podIdentity,
    request,
    token: world.random.token(),
    now: world.clock.now(),
    ...over,
  });
}

/** The pod of that name of a StatefulSet in namespace shop: `mysql-0`. */
export function ordinalAllocation(
  world: World,
  pod: string,
  request: Request,
  uid?: string,
): AllocationRequest {
  const dash = pod.lastIndexOf("-");
  const name = pod.slice(0, dash);
  const owner = { kind: "StatefulSet", apiVersion: "apps/v1", name, uid: uid ?? `uid-of-${name}` };
  const identity = { ...owner, ordinal: Number(pod.slice(dash + 1)) };
  return granted(requestFor(applying(world, { kind: "named", claim: pod, identity }, request, {})));
}

/** A bare pod, in namespace shop unless said otherwise. */
export function podAllocation(
  world: World,
  name: string,
  request: Request,
  namespace = "shop",
): AllocationRequest {
  const identity = { kind: "Pod", apiVersion: "v1", name };
  const over = { namespace: namespaceFacts(namespace) };
  return granted(requestFor(applying(world, { kind: "named", claim: name, identity }, request, over)));
}

/** What a pod that nothing tells from its like asks for. */
export function anonymousAllocation(world: World, request: Request): AllocationRequest {
  const identity = { kind: "Pod", apiVersion: "v1", name: "etl-" };
  return granted(requestFor(applying(world, { kind: "anonymous", identity }, request, {})));
}

/** The slots of Deployment `web`, wished for by one of its pods. */
export function slotsFor(world: World, request: Request, workload = "web"): AllocationRequest[] {
  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: workload };
  return slotRequests(applying(world, { kind: "set", workload, identity }, request, {}), workload);
}
