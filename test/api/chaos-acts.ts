// SPDX-License-Identifier: Apache-2.0
// What becomes of a pod, in the orders in which kubelet and runtimes were seen to call.
import { setTimeout as pause } from "node:timers/promises";
import type { SeededRandom } from "../support/random.ts";
import { type ChaosApi, type ChaosPod, PATIENCE_MS } from "./chaos-api.ts";
import { NODES } from "./chaos-cluster.ts";
import type { ExpectedUse } from "./chaos-expected.ts";
import type { Box, ChaosKubelets } from "./chaos-kubelets.ts";
import type { Role } from "./chaos-roles.ts";
import type { ChaosTally } from "./chaos-tally.ts";

export interface Stage {
  readonly api: ChaosApi;
  readonly kubelets: ChaosKubelets;
  readonly expected: ExpectedUse;
  readonly tally: ChaosTally;
  readonly sets: Map<string, string>; // name of a StatefulSet -> its UID
  /** Of one actor alone: its choices are the same in every run with the seed. */
  readonly random: SeededRandom;
}

/** A pod of the role, with its sandbox. */
export interface Life {
  readonly role: Role;
  readonly box: Box;
}

type Act = (stage: Stage, life: Life) => Promise<Life>;

const REFUSED_MS = 400;
/** From ADD of the new to DEL of the old, as seen when a pod was deleted by force. */
const OVERLAP_MS = 130;
const LATE_MS = 3_000;

/** A pod of the role on that node, with a sandbox; undefined: another one has what it asks for. */
export async function appear(
  stage: Stage,
  role: Role,
  node: string = stage.random.pick(NODES),
): Promise<Life | undefined> {
  const pod = await admit(stage, role, node);
  return pod && { role, box: await stage.kubelets.up(pod, node) };
}

/** Created, and scheduled to the node; undefined as of `appear`. */
export async function admit(
  { api, expected, tally, sets }: Stage,
  role: Role,
  node: string,
): Promise<ChaosPod | undefined> {
  for (const until = Date.now() + PATIENCE_MS; ; await pause(REFUSED_MS)) {
    const pod = await api.makePod(role.pod(sets));
    if (typeof pod !== "string") {
      expected.tell(`pod ${pod.name} ${pod.uid} of ${role.name} on ${node}: ${pod.assigned.join()}`);
      if (pod.assigned.length === 0) expected.wrong(`pod ${pod.name} came past the webhook`);
      if (role.sticky === true) expected.keeps(role.name, pod.assigned);
      await api.schedule(pod, node);
      return pod;
    }
    expected.tell(`pod of ${role.name} refused: ${pod}`);
    tally.note("pod refused");
    if (role.contested === true) return undefined;
    if (Date.now() > until) throw new Error(`no pod of ${role.name} was admitted: ${pod}`);
  }
}

/** Deleted as usual: kubelet takes the sandbox down and then gives the object up. */
export async function leave({ api, kubelets, random }: Stage, { box }: Life): Promise<void> {
  await api.deletePod(box.of, 30);
  await kubelets.down(box, 1 + random.below(3));
  await api.deletePod(box.of, 0);
}

/** Like `appear`, of what nobody else may have. */
async function again(stage: Stage, { role }: Life, node: string): Promise<Life> {
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await pause(REFUSED_MS)) {
    const life = await appear(stage, role, node);
    if (life !== undefined) return life;
  }
  throw new Error(`${role.name} never came back`);
}

/** The sandbox dies, kubelet makes another one for the same pod. */
const restart: Act = async (stage, { role, box }) => {
  const { kubelets } = stage;
  await kubelets.down(box);
  const next = await kubelets.up(box.of, box.node);
  kubelets.delLater(box, stage.random.below(LATE_MS));
  return { role, box: next };
};

/** The node loses power: the new sandbox comes before anybody hears of the old one's end. */
const powerLoss: Act = async (stage, { role, box }) => {
  const { kubelets } = stage;
  kubelets.lost(box);
  const next = await kubelets.up(box.of, box.node);
  kubelets.delLater(box, stage.random.below(LATE_MS));
  return { role, box: next };
};

const replace: Act = async (stage, life) => {
  await leave(stage, life);
  if (stage.random.below(3) === 0) await pause(stage.random.below(LATE_MS));
  return await again(stage, life, stage.random.pick(NODES));
};

/** `kubectl delete --force --grace-period=0`: ADD of the new before DEL of the old, on the same node. */
const force: Act = async (stage, life) => await usurp(stage, life, life.box.node, OVERLAP_MS);

/** kubelet is dead and the pod was deleted by force: its sandbox lives on while the next pod starts elsewhere. */
const strand: Act = async (stage, life) => {
  const other = NODES.find((node) => node !== life.box.node) ?? life.box.node;
  return await usurp(stage, life, other, 500 + stage.random.below(LATE_MS));
};

async function usurp(stage: Stage, life: Life, node: string, overlapMs: number): Promise<Life> {
  const { api, kubelets, random } = stage;
  await api.deletePod(life.box.of, 0);
  const ending = (async () => {
    await pause(overlapMs);
    await kubelets.down(life.box, 1 + random.below(3));
    kubelets.delLater(life.box, random.below(LATE_MS));
  })();
  const [next] = await Promise.all([again(stage, life, node), ending]);
  return next;
}

/** The runtime has lost its records, and sends no DEL: the agent itself finds out that the sandbox is gone. */
const vanish: Act = async (stage, life) => {
  await stage.api.deletePod(life.box.of, 0);
  stage.kubelets.lost(life.box);
  return await again(stage, life, stage.random.pick(NODES));
};

const ACTS = { vanish, restart, powerLoss, replace, force, strand } as const;
const NAMES = ["restart", "powerLoss", "replace", "replace", "force", "strand"] as const;

/** Something happens to the pod. */
export async function befall(stage: Stage, life: Life): Promise<Life> {
  const name =
    life.role.contested === true
      ? stage.random.pick(["restart", "powerLoss"] as const)
      : stage.random.pick(NAMES);
  stage.tally.note(name);
  stage.expected.tell(`${name} ${life.role.name} (${life.box.id} on ${life.box.node})`);
  return await ACTS[name](stage, life);
}
