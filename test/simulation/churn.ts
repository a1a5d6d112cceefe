// SPDX-License-Identifier: Apache-2.0
// A workload comes, is scaled, goes with its pods and comes again under its name, and its controller makes its pods at once.

import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { deploymentPod, type Json, ownedBy, statefulPod, workload } from "../support/objects.ts";
import type { Act } from "./act.ts";
import {
  DEPLOYMENT,
  MOST_REPLICAS,
  NAMESPACE,
  NODES,
  SET_REQUESTS,
  SLOT_REQUESTS,
  STATEFUL_SET,
} from "./cast.ts";
import { endPod, nodeOf } from "./node-acts.ts";
import { pick, templateOf } from "./pod-kinds.ts";
import type { World } from "./world.ts";

interface Turn {
  readonly kind: "StatefulSet" | "Deployment";
  readonly name: string;
  /** How many pods it is to have. */
  readonly replicas: number;
  readonly n: number;
}

/** One of a StatefulSet and a Deployment, by itself as its controller and the garbage collector of Kubernetes do it. */
export const churn: Act = (world, { a, b }) => {
  const stateful = a % 3 !== 0;
  const turn: Turn = {
    kind: stateful ? "StatefulSet" : "Deployment",
    name: stateful ? STATEFUL_SET : DEPLOYMENT,
    replicas: b % (MOST_REPLICAS + 1),
    n: (a >> 2) + b,
  };
  const there = currentOf(world, turn);
  const way = there === undefined ? "create" : pick(["scale", "background", "foreground"] as const, b >> 2);
  world.tally.note(`churn: ${way}`, "done");
  world.schedule.tell("controller", () => `${way} ${turn.kind} ${turn.name} with ${turn.replicas} replicas`);
  if (there === undefined || way === "scale") void scale(world, turn, there);
  else void makeAnew(world, turn, { there, way });
  return "done";
};

/** With its pods, before it or after it: its name is free at once, those of its pods when they are gone. */
async function makeAnew(
  world: World,
  turn: Turn,
  { there, way }: { there: KubeObject; way: string },
): Promise<void> {
  const pods = podsOf(world, turn, there);
  if (way === "foreground") await deleteAll(world, turn, pods);
  await world.clients.withdraw(there.json.value, turn.n);
  if (way === "background") await deleteAll(world, turn, pods);
  await scale(world, turn, currentOf(world, turn));
}

/** What it has too much goes, the last ones first, and what it lacks comes. */
async function scale(world: World, turn: Turn, current: KubeObject | undefined): Promise<void> {
  const { kind, name, replicas, n } = turn;
  const requests = kind === "StatefulSet" ? SET_REQUESTS : SLOT_REQUESTS;
  const annotations = current === undefined ? pick(requests, n) : templateOf(current);
  const json = workload(kind, name, { replicas, annotations, spec: { strategy: { type: "Recreate" } } });
  await world.clients.apply(json, current, n);
  const now = currentOf(world, turn);
  if (now === undefined) return;
  const wanted = now.spec.count("replicas", 1);
  const pods = podsOf(world, turn, now);
  await deleteAll(
    world,
    turn,
    kind === "StatefulSet" ? pods.filter((pod) => ordinalOf(pod) >= wanted) : pods.slice(wanted),
  );
  await Promise.all(
    missing(world, turn, now).map((pod, i) =>
      world.clients.createPod(pod, { node: pick(NODES, n + i), webhook: n + i }),
    ),
  );
}

function missing(world: World, { kind, name }: Turn, owner: KubeObject): readonly Json[] {
  const annotations = templateOf(owner);
  const wanted = owner.spec.count("replicas", 1);
  if (kind === "Deployment") {
    const lacking = Math.max(0, wanted - podsOf(world, { kind }, owner).length);
    return Array.from({ length: lacking }, () => deploymentPod(name, { annotations }));
  }
  const own = ownedBy("StatefulSet", name, "apps/v1", owner.metadata.uid);
  return Array.from({ length: wanted }, (_, ordinal) => ordinal)
    .filter((ordinal) => world.cluster.pod(NAMESPACE, `${name}-${ordinal}`) === undefined)
    .map((ordinal) => statefulPod(name, ordinal, { annotations, owner: own }));
}

/** Those of the StatefulSet of that UID; any ReplicaSet's of the Deployment's name. */
function podsOf(
  { cluster }: World,
  { kind }: Pick<Turn, "kind">,
  { metadata }: KubeObject,
): readonly KubeObject[] {
  return cluster
    .all("Pod")
    .filter(({ metadata: { owner } }) =>
      kind === "StatefulSet"
        ? owner?.uid === metadata.uid
        : owner?.name.startsWith(`${metadata.name}-`) === true,
    );
}

/** Their kubelets stop them, if they hear of it, and the objects go. */
async function deleteAll(world: World, { n }: Turn, pods: readonly KubeObject[]): Promise<void> {
  const running = nodeOf(world);
  await Promise.all(
    pods.map(async ({ metadata, json }, i) => {
      const its = running.find(({ pod }) => pod.uid === metadata.uid);
      if (its !== undefined && n % 4 !== 0) endPod(its);
      await world.clients.withdraw(json.value, n + i);
    }),
  );
}

function currentOf({ cluster }: World, { kind, name }: Turn): KubeObject | undefined {
  const there = cluster.find(kind, NAMESPACE, name);
  return there === "deleted" ? undefined : there;
}

function ordinalOf({ metadata: { name } }: KubeObject): number {
  return Number(name.slice(name.lastIndexOf("-") + 1));
}
