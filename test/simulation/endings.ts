// SPDX-License-Identifier: Apache-2.0
// Pods that end while their objects stay.
import type { Act } from "./act.ts";
import type { Node } from "./node.ts";
import { choose, isThere, nodeOf, takeDown } from "./node-acts.ts";
import type { Pod } from "./pod.ts";
import type { World } from "./world.ts";

const PHASES = ["Failed", "Succeeded"] as const;
/** A kubelet's, which says it until it is known. */
const SAY_AGAIN_MS = 10_000;

/** It completes, fails or is evicted: its sandbox goes, and its object stays until somebody deletes it. */
export const end: Act = (world, { a, b }) => {
  const living = nodeOf(world).filter(({ pod }) => !pod.terminating && isThere(world, pod));
  const chosen = choose(living, a);
  if (chosen === undefined) return "idle";
  endHere(world, chosen.node, chosen.pod, b);
  return "done";
};

/** A host that shuts down in order ends its pods first. */
export function endAll(world: World, node: Node, n: number): void {
  for (const pod of node.pods.values()) if (!pod.terminating) endHere(world, node, pod, n);
}

function endHere(world: World, node: Node, pod: Pod, n: number): void {
  pod.terminating = true;
  world.schedule.tell(node.name, () => `pod ${pod.name}/${pod.uid} ENDS`);
  takeDown({ node, pod });
  sayEnded(world, { node, pod }, n);
}

/** What the pod was is known to its kubelet for longer than one boot. */
function sayEnded(world: World, { node, pod }: { node: Node; pod: Pod }, n: number, due?: number): void {
  const run = () => {
    const object = world.cluster.find("Pod", pod.namespace, pod.name);
    if (object === undefined || object === "deleted" || object.metadata.uid !== pod.uid) return "is gone";
    if (world.cluster.pod(pod.namespace, pod.name)?.ended === true) return "is known";
    void world.clients.reportPhase(object, PHASES[n % PHASES.length] ?? "Failed", n);
    sayEnded(world, { node, pod }, n >> 1, world.schedule.time + SAY_AGAIN_MS);
    return "";
  };
  world.schedule.offer({
    owner: pod,
    who: node.name,
    what: () => `the kubelet says that pod ${pod.name}/${pod.uid} has ended`,
    ready: () => node.on,
    ...(due === undefined ? {} : { due }),
    run,
  });
}
