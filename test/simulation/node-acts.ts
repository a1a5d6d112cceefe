// SPDX-License-Identifier: Apache-2.0
import type { Act } from "./act.ts";
import type { Sandbox } from "./cni-call.ts";
import type { Node } from "./node.ts";
import type { Pod } from "./pod.ts";
import type { StepKind } from "./steps.ts";
import type { World } from "./world.ts";

interface NodeOf {
  readonly node: Node;
  readonly pod: Pod;
}

export function choose<T>(choices: readonly T[], n: number): T | undefined {
  return choices.length === 0 ? undefined : choices[n % choices.length];
}

/** Pods that run or are to run, wherever there is power. */
export function nodeOf(world: World): NodeOf[] {
  return world.nodes
    .filter(({ on }) => on)
    .flatMap((node) => [...node.pods.values()].map((pod) => ({ node, pod })));
}

export function isThere(world: World, pod: Pod): boolean {
  return world.cluster.pod(pod.namespace, pod.name)?.uid === pod.uid;
}

function sandboxes(
  world: World,
  phase: Sandbox["phase"],
): { readonly node: Node; readonly sandbox: Sandbox }[] {
  return world.nodes
    .filter(({ on }) => on)
    .flatMap((node) =>
      node.sandboxes.filter((sandbox) => sandbox.phase === phase).map((sandbox) => ({ node, sandbox })),
    );
}

/** A kubelet starts what has no sandbox, and may not know yet that the pod's object is gone. */
const add: Act = (world, { a, b }) => {
  const waiting = nodeOf(world).filter(
    ({ node, pod }) => !pod.terminating && node.currentOf(pod) === undefined,
  );
  const there = waiting.filter(({ pod }) => isThere(world, pod));
  const chosen = choose(b % 8 === 0 || there.length === 0 ? waiting : there, a);
  if (chosen === undefined) return "idle";
  chosen.node.startSandbox(chosen.pod);
  return "done";
};

const restart: Act = (world, { a }) => {
  const chosen = choose(sandboxes(world, "up"), a);
  if (chosen === undefined) return "idle";
  chosen.node.stopSandbox(chosen.sandbox);
  const isWhole = chosen.sandbox.pod.further.length === 0;
  if (a % 2 === 0 && isWhole) chosen.node.startSandbox(chosen.sandbox.pod);
  return "done";
};

const vanish: Act = (world, { a }) => {
  const chosen = choose(sandboxes(world, "up"), a);
  if (chosen === undefined) return "idle";
  chosen.node.loseSandbox(chosen.sandbox);
  return "done";
};

/** A DEL of what is long gone, or an ADD of what is up. */
const again: Act = (world, { a, b }) => {
  const verb = b % 3 === 0 ? "ADD" : "DEL";
  const chosen = choose(sandboxes(world, verb === "ADD" ? "up" : "down"), a);
  if (chosen === undefined) return "idle";
  chosen.node.send(verb, chosen.sandbox);
  return "done";
};

/** Its kubelet stops it first; the object goes when the sandbox is down. */
const gracefully: Act = (world, { a, b }) => {
  const chosen = choose(
    nodeOf(world).filter(({ pod }) => isThere(world, pod)),
    a,
  );
  if (chosen === undefined) return "idle";
  endPod(chosen);
  forget(world, chosen.pod, b);
  return "done";
};

/** The object goes at once, and its kubelet hears of it when it hears of it. */
const force: Act = (world, { a, b }) => {
  const pods = world.cluster.all("Pod");
  const object = choose(pods, a);
  if (object !== undefined && b % 4 !== 0) {
    void world.clients.withdraw(object.json.value, b);
    return "done";
  }
  const orphan = choose(
    nodeOf(world).filter(({ pod }) => !isThere(world, pod)),
    a,
  );
  if (orphan === undefined) return "idle";
  endPod(orphan);
  return "done";
};

export function endPod({ node, pod }: NodeOf): void {
  pod.terminating = true;
  node.pods.delete(pod.uid);
  takeDown({ node, pod });
}

/** Its sandbox, wherever that has got to. */
export function takeDown({ node, pod }: NodeOf): void {
  const sandbox = node.currentOf(pod);
  if (sandbox === undefined) return;
  const call = node.starting.find((starting) => starting.sandbox === sandbox);
  if (call === undefined) node.stopSandbox(sandbox);
  else node.giveUp(call, true);
}

export function forget(world: World, pod: Pod, webhook: number): void {
  const object = world.cluster.find("Pod", pod.namespace, pod.name);
  if (object === undefined || object === "deleted" || object.metadata.uid !== pod.uid) return;
  void world.clients.withdraw(object.json.value, webhook);
}

export const nodeActs = { add, restart, vanish, again, delete: gracefully, force } satisfies Partial<
  Record<StepKind, Act>
>;
