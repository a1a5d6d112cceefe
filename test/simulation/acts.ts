// SPDX-License-Identifier: Apache-2.0

import { IPS } from "../../allocator/manifest/annotations.ts";
import { claimObject, deploymentPod, ownedBy, pod, statefulPod, workload } from "../support/objects.ts";
import type { Act } from "./act.ts";
import { block } from "./block-acts.ts";
import {
  CLAIM_NAMES,
  CLAIM_SPECS,
  DEPLOYMENT,
  FORMER_UID,
  MOST_REPLICAS,
  NAMESPACE,
  NODES,
  POD_NAMES,
  POD_REQUESTS,
  SET_REQUESTS,
  SLOT_REQUESTS,
  STATEFUL_SET,
} from "./cast.ts";
import { churn } from "./churn.ts";
import { end } from "./endings.ts";
import { faults } from "./faults.ts";
import { nodeActs } from "./node-acts.ts";
import { SILENT_RUNTIME } from "./pod.ts";
import { absent, pick, podJson, templateOf } from "./pod-kinds.ts";
import type { Step, StepKind } from "./steps.ts";
import type { Outcome } from "./tally.ts";
import type { World } from "./world.ts";

export const ACTS: Readonly<Record<StepKind, Act>> = {
  pod: createPod,
  race,
  forge,
  twice,
  namesake,
  apply: applyWorkload,
  withdraw,
  churn,
  claim: makeClaim,
  release: releaseClaim,
  block,
  quota,
  end,
  ...nodeActs,
  ...faults,
  calm: () => "done",
};

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

/** Any name that a claim has, whether its pod is there or not; and whatever it likes. */
function forge(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const claims = world.records.list("claim");
  if (claims.length === 0) return "idle";
  const { name, identity } = pick(claims, a >> 2).record;
  const slot = identity.kind === "Deployment" && b % 2 === 0;
  const annotations = pick(slot ? SLOT_REQUESTS : [...POD_REQUESTS, ...SET_REQUESTS], b >> 1);
  const own = identity.kind === "StatefulSet" && a % 2 === 0;
  const json = slot
    ? deploymentPod(DEPLOYMENT, { annotations })
    : own
      ? statefulPod(STATEFUL_SET, identity.ordinal ?? 0, { annotations })
      : pod(name, { annotations });
  void world.clients.forge(json, b);
  return "done";
}

/** As a second `kubectl create`, or a restore that leaves the owners out: the API server refuses it after its review. */
function twice(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const pods = world.cluster.all("Pod");
  if (pods.length === 0) return "idle";
  const { name, annotations } = pick(pods, a >> 1).metadata;
  const asked = a % 2 === 0 ? annotations : pick(POD_REQUESTS, b);
  void world.clients.createPod(pod(name, { annotations: asked }), { node: pick(NODES, a), webhook: b });
  return "done";
}

/**
 * As a restore that leaves the owners out while the StatefulSet is there, or retains what its pods had; or one that leaves
 * them in, who are gone.
 */
function namesake(world: World, { a, b }: Pick<Step, "a" | "b">): Outcome {
  const ordinals = Array.from({ length: MOST_REPLICAS + 1 }, (_, ordinal) => `${STATEFUL_SET}-${ordinal}`);
  const name = absent(world, ordinals, a);
  if (name === undefined) return "idle";
  const addresses = world.records.get("claim", `${NAMESPACE}/${name}`)?.record.addresses ?? [];
  const own = addresses.length > 0 && b % 3 !== 0;
  const annotations = own ? { [IPS]: addresses.join(",") } : pick(POD_REQUESTS, b >> 2);
  const owner = ownedBy("StatefulSet", STATEFUL_SET, "apps/v1", FORMER_UID);
  const json = pod(name, { annotations, ...(b % 5 < 2 ? { owner } : {}) });
  void world.clients.createPod(json, { node: pick(NODES, a >> 2), webhook: b });
  return "done";
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
  const claims = world.records.list("claim");
  if (claims.length === 0) return "idle";
  const { name } = pick(claims, a).record;
  void world.clients.withdraw(claimObject(name, {}, NAMESPACE), b);
  return "done";
}

/** As a ResourceQuota of claims that is used up, until it is lifted. */
function quota(world: World, { a }: Pick<Step, "a" | "b">): Outcome {
  const { quota: there, records } = world;
  if (there.most === undefined && a % 2 === 0) return "idle";
  there.most = there.most === undefined ? records.list("claim").length + (a % 3) : undefined;
  world.schedule.tell("quota", () => `${world.quota.most ?? "any number of"} claims`);
  return "done";
}
