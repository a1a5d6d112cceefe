// SPDX-License-Identifier: Apache-2.0
// Complete wishes of identities, as admission makes them.
import type { PodStanding } from "../../allocator/identity.ts";
import { type Applicant, intentOf, slotIntents } from "../../allocator/intent.ts";
import type { Request } from "../../allocator/request.ts";
import type { Intent } from "../../allocator/reserve.ts";
import { addr, applicantOf, granted, namespaceFacts } from "./fixtures.ts";
import type { World } from "./world.ts";

/** Entries as they stand in an annotation: pods apart by ";", families by ",". */
export function entries(list: string): Request {
  return { entries: list.split(";").map((entry) => entry.split(",").map((text) => addr(text))) };
}

type Over = Partial<Pick<Applicant, "start" | "podLabels" | "namespace" | "standing">>;

function applying(world: World, standing: PodStanding, request: Request, over: Over): Applicant {
  return applicantOf({ standing, request, token: world.random.token(), now: world.clock.now(), ...over });
}

/** The pod of that name of a StatefulSet in namespace shop: `mysql-0`. */
export function ordinalIntent(world: World, pod: string, request: Request, uid?: string): Intent {
  const dash = pod.lastIndexOf("-");
  const name = pod.slice(0, dash);
  const owner = { kind: "StatefulSet", apiVersion: "apps/v1", name, uid: uid ?? `uid-of-${name}` };
  const identity = { ...owner, ordinal: Number(pod.slice(dash + 1)) };
  return granted(intentOf(applying(world, { kind: "named", claim: pod, identity }, request, {})));
}

/** A bare pod, in namespace shop unless said otherwise. */
export function podIntent(world: World, name: string, request: Request, namespace = "shop"): Intent {
  const identity = { kind: "Pod", apiVersion: "v1", name };
  const over = { namespace: namespaceFacts(namespace) };
  return granted(intentOf(applying(world, { kind: "named", claim: name, identity }, request, over)));
}

/** What a pod that nothing tells from its like asks for. */
export function anonymousIntent(world: World, request: Request): Intent {
  const identity = { kind: "Pod", apiVersion: "v1", name: "etl-" };
  return granted(intentOf(applying(world, { kind: "anonymous", identity }, request, {})));
}

/** The slots of Deployment `web`, wished for by one of its pods. */
export function slotsFor(world: World, request: Request, workload = "web"): Intent[] {
  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: workload };
  return slotIntents(applying(world, { kind: "set", workload, identity }, request, {}), workload);
}
