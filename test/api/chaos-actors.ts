// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import { CLAIMS, STATEFULSETS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { appear, befall, type Life, leave, type Stage } from "./chaos-acts.ts";
import { ANY, ordinal, POOL, type Role } from "./chaos-roles.ts";
import { workloadSpec } from "./replica-objects.ts";

/** Lives until the signal, and then takes its pods away. */
export type Actor = (stage: Stage, stop: AbortSignal) => Promise<void>;

const IDLE_MS = 1_200;
const MOST_REPLICAS = 4;
/** After an outage it takes a new leader, and watches that have backed off. */
const CLAIM_MS = 90_000;

/** Pods of the role, one after the other. */
export function keeper(role: Role): Actor {
  return async (stage, stop) => {
    let life: Life | undefined;
    while (!stop.aborted) {
      life ??= await appear(stage, role);
      await idle(stage, stop);
      if (life === undefined) continue;
      if (role.contested === true && stage.random.below(2) === 0) {
        await leave(stage, life);
        life = undefined;
      } else {
        life = await befall(stage, life);
      }
    }
    if (life !== undefined) await leave(stage, life);
  };
}

/** A StatefulSet that is scaled up and down, deleted and made again. */
export function scaler(set: string): Actor {
  return async (stage, stop) => {
    const lives: Life[] = [];
    await makeSet(stage, set, 0);
    while (!stop.aborted) {
      const wanted = stage.random.below(MOST_REPLICAS + 1);
      await scale(stage, { set, lives, wanted });
      await idle(stage, stop);
      const n = stage.random.below(lives.length + 1);
      const life = lives[n];
      if (life !== undefined) lives[n] = await befall(stage, life);
      else if (wanted === 0) await remakeSet(stage, set);
    }
    await scale(stage, { set, lives, wanted: 0 });
    await stage.api.delete(STATEFULSETS, { namespace: NAMESPACE, name: set });
  };
}

/** Like the StatefulSet controller: one after the other, the highest goes first. */
async function scale(
  stage: Stage,
  { set, lives, wanted }: { readonly set: string; readonly lives: Life[]; readonly wanted: number },
): Promise<void> {
  const place = { namespace: NAMESPACE, name: set };
  await stage.api.change(STATEFULSETS, place, { spec: { replicas: wanted } });
  stage.tally.note("scale");
  while (lives.length > wanted) {
    const last = lives.pop();
    if (last !== undefined) await leave(stage, last);
  }
  while (lives.length < wanted) {
    const next = await appear(stage, ordinal(set, lives.length));
    if (next !== undefined) lives.push(next);
  }
}

async function remakeSet(stage: Stage, set: string): Promise<void> {
  stage.tally.note("set made again");
  await stage.api.delete(STATEFULSETS, { namespace: NAMESPACE, name: set });
  for (let n = 0; n < MOST_REPLICAS; n++) stage.expected.forget(`${set}-${n}`);
  await pause(stage.random.below(IDLE_MS));
  await makeSet(stage, set, 0);
}

export async function makeSet({ api, sets }: Stage, name: string, replicas: number): Promise<void> {
  const spec = { serviceName: name, ...workloadSpec(name, { replicas, annotations: ANY }) };
  sets.set(name, await api.make(STATEFULSETS, { namespace: NAMESPACE, name }, { spec }));
}

/** A claim that a person makes; its pod is to have its addresses. */
export async function makeClaim({ api, expected }: Stage, name: string): Promise<void> {
  const place = { namespace: NAMESPACE, name };
  await api.make(CLAIMS, place, { spec: { request: { pools: [POOL] } } });
  const addresses = await eventually(
    `claim ${name} has addresses`,
    async () => {
      const claim = (await api.get(CLAIMS, place)) as
        | { spec?: { addresses?: readonly string[] } }
        | undefined;
      const has = claim?.spec?.addresses ?? [];
      return has.length > 0 ? has : undefined;
    },
    CLAIM_MS,
  );
  expected.keeps(name, addresses);
}

async function idle({ random }: Stage, stop: AbortSignal): Promise<void> {
  await pause(random.below(IDLE_MS), undefined, { signal: stop }).catch(() => {});
}
