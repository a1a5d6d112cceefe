// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import type { Order } from "./schedule.ts";
import { UNTIL_QUIET } from "./schedule.ts";

/** What somebody does, or what befalls somebody, and how often among a hundred steps. */
export const WEIGHTS = {
  pod: 14, // a pod is created
  race: 4, // two replicas are asked for one pod at once, or for one address
  forge: 3, // a review without a pod: forged, or its pod is refused later
  twice: 3, // a pod is created whose name another one has
  namesake: 3, // a pod without an owner is called like an ordinal
  delete: 6, // its kubelet stops it, then its object goes
  force: 4, // its object goes at once
  end: 6, // it fails, completes or is evicted, and its object stays
  apply: 9, // a StatefulSet or Deployment is made, scaled or changed
  withdraw: 3, // and deleted
  churn: 5, // made, scaled or made anew under its name, with its pods
  claim: 3, // a person makes a claim
  release: 2, // or gives one back
  block: 5, // a node gets a block of a pool, or gives one back
  quota: 2, // the API server takes no more claims than there are, or again any number
  add: 8, // a kubelet starts a sandbox at once
  restart: 5, // and stops it, to start another one
  vanish: 2, // or it goes without a DEL
  again: 4, // a call comes once more
  wait: 9, // time passes
  crash: 4, // kill -9
  freeze: 3, // a process stands still, or goes on
  cut: 3, // a process is cut off from the others, or back
  deaf: 3, // its watches hold back, or go on
  skew: 2, // a wall clock jumps
  reboot: 2, // of a host
  journal: 1, // an agent comes up with an empty journal, or its own is there again
  power: 3, // a host goes off, its node is fenced, it comes back
  calm: 2, // nothing but what is under way
} as const;

export type StepKind = keyof typeof WEIGHTS;

/** Of a life in which every address that a pod asks for nothing is of a claim. */
export const USUAL: Readonly<Partial<Record<StepKind, number>>> = { ...WEIGHTS, block: 0 };

/** Of a life in which nodes have blocks, and serve pods that ask for nothing out of them. */
export const WITH_BLOCKS: Readonly<Partial<Record<StepKind, number>>> = { ...WEIGHTS, block: 12 };

/** One step: an act, chosen among what there is by `a` and `b`, and what happens after it. */
export interface Step {
  readonly kind: StepKind;
  readonly a: number;
  readonly b: number;
  readonly events: number;
  readonly order: Order;
  readonly trouble: number;
  readonly seed: number;
}

const events = fc.oneof(
  { weight: 3, arbitrary: fc.constant(UNTIL_QUIET) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 8 }) },
);

/** Most of the time all goes well. */
const TROUBLES: readonly number[] = [0, 0, 0, 0, 0, 0, 0.03, 0.03, 0.15];

export const MOST_STEPS = 100;

/** The steps of a run, of these kinds, each weighing that much, and with one of these shares of what goes wrong. */
export function stepsOf(
  weights: Readonly<Partial<Record<StepKind, number>>> = USUAL,
  troubles = TROUBLES,
): fc.Arbitrary<readonly Step[]> {
  const kinds = Object.entries(weights).map(([name, weight]) => {
    return { weight, arbitrary: fc.constant(name as StepKind) };
  });
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.oneof(...kinds),
    a: fc.nat(999),
    b: fc.nat(999),
    events,
    order: fc.constantFrom<Order>("old", "any", "same", "new"),
    trouble: fc.constantFrom(...troubles),
    seed: fc.nat(999_999),
  });
  return fc.array(step, { minLength: 1, maxLength: MOST_STEPS, size: "max" });
}
