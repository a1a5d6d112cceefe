// SPDX-License-Identifier: Apache-2.0
// The pods that people and controllers make.

import type { Labels } from "../../allocator/base/ports.ts";
import type { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { deploymentPod, type Json, ownedBy, pod, statefulPod } from "../support/objects.ts";
import {
  ANONYMOUS,
  DEPLOYMENT,
  FOREIGN_GROUP,
  FOREIGN_REQUESTS,
  FOREIGN_SET,
  JOB,
  JOB_INDEXES,
  JOB_REQUESTS,
  NAMESPACE,
  POD_NAMES,
  POD_REQUESTS,
  REPLICA_SET,
  ROLLOUT,
  STATEFUL_SET,
} from "./cast.ts";
import type { World } from "./world.ts";

/** Which kind of pod, by a number: most have a name of their own. */
const POD_KINDS = [
  ...(["bare", "bare", "bare", "bare", "ordinal", "ordinal", "ordinal", "ordinal"] as const),
  ...(["slot", "slot", "index", "index", "replica", "rollout", "foreign", "anonymous"] as const),
];
type PodKind = (typeof POD_KINDS)[number];

export const HASH = "7c5d4f";
const INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index";

type Maker = (world: World, n: number) => Json | undefined;

const MAKERS: Readonly<Record<PodKind, Maker>> = {
  bare(world, n) {
    const name = absent(world, [...POD_NAMES, "h"], n);
    return name === undefined ? undefined : pod(name, { annotations: pick(POD_REQUESTS, n >> 2) });
  },
  ordinal: ordinalPod,
  slot(world, n) {
    const owner = world.cluster.find("Deployment", NAMESPACE, DEPLOYMENT);
    if (owner === undefined || owner === "deleted") return MAKERS.bare(world, n);
    return deploymentPod(DEPLOYMENT, { annotations: templateOf(owner) });
  },
  index(world, n) {
    const index = Array.from({ length: JOB_INDEXES }, (_, i) => (n + i) % JOB_INDEXES).find(
      (i) => !livesIndex(world, i),
    );
    return index === undefined ? undefined : indexPod(index, pick(JOB_REQUESTS, [1, 2][n % 7] ?? 0));
  },
  replica(_, n) {
    const owner = ownedBy("ReplicaSet", REPLICA_SET);
    return pod("", { generateName: `${REPLICA_SET}-`, owner, annotations: pick(FOREIGN_REQUESTS, n) });
  },
  rollout(_, n) {
    const owner = ownedBy("ReplicaSet", `${ROLLOUT}-${HASH}`);
    const labels = { "rollouts-pod-template-hash": HASH };
    const annotations = pick(FOREIGN_REQUESTS, n);
    return pod("", { generateName: `${ROLLOUT}-${HASH}-`, owner, labels, annotations });
  },
  foreign(world, n) {
    const name = absent(world, [`${FOREIGN_SET}-0`, `${FOREIGN_SET}-1`], n);
    const owner = ownedBy("StatefulSet", FOREIGN_SET, FOREIGN_GROUP);
    return name === undefined ? undefined : pod(name, { owner, annotations: pick(FOREIGN_REQUESTS, n >> 1) });
  },
  anonymous: () => pod("", { generateName: "e-", annotations: ANONYMOUS }),
};

/** Undefined: every pod that might be made is there. */
export function podJson(world: World, a: number, b: number): Json | undefined {
  const kind = pick(POD_KINDS, a);
  const json = MAKERS[kind](world, b >> 2);
  world.tally.note(`${kind} pod`, json === undefined ? "idle" : "done");
  return json;
}

/** A controller may not have heard yet that the set was scaled down. */
function ordinalPod(world: World, n: number): Json | undefined {
  const set = world.cluster.find("StatefulSet", NAMESPACE, STATEFUL_SET);
  if (set === undefined || set === "deleted") return MAKERS.bare(world, n);
  const replicas = set.spec.count("replicas", 1) + (n % 5 === 0 ? 1 : 0);
  const names = Array.from({ length: replicas }, (_, ordinal) => `${STATEFUL_SET}-${ordinal}`);
  const name = absent(world, names, n);
  if (name === undefined) return undefined;
  const owner = ownedBy("StatefulSet", STATEFUL_SET, "apps/v1", set.metadata.uid);
  return statefulPod(STATEFUL_SET, names.indexOf(name), { annotations: templateOf(set), owner });
}

/** As the Job's controller makes it: another pod each time, for the same index. */
export function indexPod(index: number, annotations: Labels): Json {
  return pod("", {
    generateName: `${JOB}-${index}-`,
    owner: ownedBy("Job", JOB, "batch/v1"),
    annotations: { ...annotations, [INDEX_ANNOTATION]: String(index) },
  });
}

/** The Job's controller makes no second pod of an index before the first has ended. */
export function livesIndex({ cluster }: World, index: number): boolean {
  return cluster.all("Pod").some(({ metadata: { namespace, name, annotations, owner } }) => {
    const its = owner?.kind === "Job" && annotations[INDEX_ANNOTATION] === String(index);
    return its && cluster.pod(namespace, name)?.ended === false;
  });
}

/** One of the names that no pod has. */
export function absent(world: World, names: readonly string[], n: number): string | undefined {
  const free = names.filter((name) => world.cluster.pod(NAMESPACE, name) === undefined);
  return free.length === 0 ? undefined : pick(free, n);
}

export function templateOf({ spec }: { readonly spec: Fields }): Labels {
  return spec.at("template").at("metadata").texts("annotations");
}

/** One of them, whatever the number. */
export function pick<T>(choices: readonly T[], n: number): T {
  const choice = choices[n % choices.length];
  if (choice === undefined) throw new RangeError("nothing to pick from");
  return choice;
}
