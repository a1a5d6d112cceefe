// SPDX-License-Identifier: Apache-2.0

import type { Fields } from "../../allocator/kube-object.ts";
import type { Labels } from "../../allocator/ports.ts";
import { claimObject, deploymentPod, type Json, pod, statefulPod, workload } from "../support/objects.ts";
import type { Act } from "./act.ts";
import {
  ANONYMOUS,
  CLAIM_NAMES,
  CLAIM_SPECS,
  DEPLOYMENT,
  MOST_REPLICAS,
  NAMESPACE,
  NODES,
  POD_NAMES,
  POD_REQUESTS,
  SET_REQUESTS,
  SLOT_REQUESTS,
  STATEFUL_SET,
} from "./cast.ts";
import { befalls } from "./mishaps.ts";
import { nodeActs } from "./node-acts.ts";
import { SILENT_RUNTIME } from "./pod.ts";
import type { Step, StepKind } from "./steps.ts";
import type { Outcome } from "./tally.ts";
import type { World } from "./world.ts";

export const ACTS: Readonly<Record<StepKind, Act>> = {
  pod: createPod,
  race,
  apply: applyWorkload,
  withdraw,
  claim: makeClaim,
  release: releaseClaim,
  ...nodeActs,
  ...befalls,
  calm: () => "done",
};

/** One of them, whatever the number. */
export function pick<T>(choices: readonly T[], n: number): T {
  const choice = choices[n % choices.length];
  if (choice === undefined) throw new RangeError("nothing to pick from");
  return choice;
}

/** Which kind of pod, by a number: most have a name of their own. */
const POD_KINDS = ["bare", "bare", "bare", "ordinal", "ordinal", "ordinal", "slot", "anonymous"] as const;

/** One pod in that many runs where the UID is not told. */
const SILENT_EVERY = 9;

function createPod(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const json = podJson(world, a, b);
  if (json === undefined) return "idle";
  const runtime = b % SILENT_EVERY === SILENT_EVERY - 1 ? { runtimeClassName: SILENT_RUNTIME } : {};
  void world.clients.createPod(json, { node: pick(NODES, a >> 3), webhook: b, ...runtime });
  return "done";
}

/** An API server that was not answered in time asks another replica; and two pods may want the same. */
function race(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const name = absent(world, POD_NAMES, a);
  if (name === undefined) return "idle";
  const other = b % 2 === 0 ? name : (absent(world, POD_NAMES, a + 1) ?? name);
  for (const [i, contender] of [name, other].entries()) {
    const annotations = pick(POD_REQUESTS, (b >> 1) + (b % 3 === 0 ? i : 0));
    void world.clients.createPod(pod(contender, { annotations }), {
      node: pick(NODES, a + i),
      webhook: a + i,
    });
  }
  return "done";
}

function podJson(world: World, a: number, b: number): Json | undefined {
  switch (pick(POD_KINDS, a)) {
    case "bare": {
      const name = absent(world, [...POD_NAMES, "h"], b >> 2);
      return name === undefined ? undefined : pod(name, { annotations: pick(POD_REQUESTS, b >> 4) });
    }
    case "ordinal": {
      const set = world.cluster.find("StatefulSet", NAMESPACE, STATEFUL_SET);
      if (set === undefined || set === "deleted") return podJson(world, 0, b);
      // A controller may not have heard yet that the set was scaled down.
      const replicas = set.spec.count("replicas", 1) + (a % 5 === 0 ? 1 : 0);
      const names = Array.from({ length: replicas }, (_, ordinal) => `${STATEFUL_SET}-${ordinal}`);
      const name = absent(world, names, b);
      if (name === undefined) return undefined;
      return statefulPod(STATEFUL_SET, names.indexOf(name), { annotations: templateOf(set) });
    }
    case "slot": {
      const owner = world.cluster.find("Deployment", NAMESPACE, DEPLOYMENT);
      if (owner === undefined || owner === "deleted") return podJson(world, 0, b);
      return deploymentPod(DEPLOYMENT, { annotations: templateOf(owner) });
    }
    default:
      return pod("", { generateName: "e-", annotations: ANONYMOUS });
  }
}

/** One of the names that no pod has. */
function absent(world: World, names: readonly string[], n: number): string | undefined {
  const free = names.filter((name) => world.cluster.pod(NAMESPACE, name) === undefined);
  return free.length === 0 ? undefined : pick(free, n);
}

function templateOf({ spec }: { readonly spec: Fields }): Labels {
  return spec.at("template").at("metadata").texts("annotations");
}

function applyWorkload(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const stateful = a % 3 !== 0;
  const [kind, name] = stateful ? ["StatefulSet", STATEFUL_SET] : ["Deployment", DEPLOYMENT];
  const there = world.cluster.find(kind, NAMESPACE, name);
  const current = there === "deleted" ? undefined : there;
  const requests = stateful ? SET_REQUESTS : SLOT_REQUESTS;
  // Scaling is commoner than another template.
  const annotations = current !== undefined && a % 4 !== 0 ? templateOf(current) : pick(requests, a >> 2);
  const replicas = b % (MOST_REPLICAS + 1);
  const json = workload(kind, name, { replicas, annotations, spec: { strategy: { type: "Recreate" } } });
  void world.clients.apply(json, current, b);
  return "done";
}

function withdraw(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const there = [...world.cluster.all("StatefulSet"), ...world.cluster.all("Deployment")];
  if (there.length === 0) return "idle";
  void world.clients.withdraw(pick(there, a).json.value, b);
  return "done";
}

function makeClaim(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const json = claimObject(pick(CLAIM_NAMES, a), pick(CLAIM_SPECS, b), NAMESPACE);
  void world.clients.apply(json, undefined, a >> 2);
  return "done";
}

/** A person gives a claim back: one that people made, or any other. */
function releaseClaim(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const claims = world.books.list("claim");
  if (claims.length === 0) return "idle";
  const { name } = pick(claims, a).record;
  void world.clients.withdraw(claimObject(name, {}, NAMESPACE), b);
  return "done";
}
