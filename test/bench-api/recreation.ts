// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import { makeNode } from "../api/replica-objects.ts";
import type { Figure } from "../bench/figure.ts";
import { openLoop } from "../bench/load.ts";
import { eventually } from "../support/eventually.ts";
import { admissionTimes, openAdmissionPlane } from "./admission-plane.ts";
import type { ApiSetup } from "./api-setup.ts";
import { BindingWatch } from "./binding-watch.ts";
import { addressAt, NAMESPACE } from "./contender.ts";
import type { Plane } from "./plane.ts";
import { type CreatedPod, PodCreator } from "./pod-creator.ts";
import { type Coming, reportRecreation } from "./recreation-report.ts";

const FULL = { rounds: 4, pods: 250, perSecond: 50, settleMs: 2_000 };
const QUICK = { rounds: 2, pods: 10, perSecond: 20, settleMs: 200 };
const LINES = 32;
const NODES = 10;
const TAKEN = 100;
/** The pinned addresses, behind those that are taken. */
const PINNED_FROM = 1_000;
const BOUND_MS = 60_000;

type Size = typeof FULL;

/** One set of pods, as they come. */
interface Stage {
  readonly plane: Plane;
  readonly creator: PodCreator;
  readonly watch: BindingWatch;
  readonly size: Size;
}

interface Pinned {
  readonly name: string;
  readonly address: string;
  readonly node: string;
}

/** Pinned pods, created, deleted and created again: what Berth's part of it takes, and whether any address changes. */
export async function measureRecreation(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const plane = await openAdmissionPlane(setup, TAKEN);
  for (let i = 0; i < NODES; i++) await makeNode(plane.connection, nodeOf(i));
  const watch = new BindingWatch(plane.connection, NAMESPACE);
  setup.defer(() => watch.close());
  const stage = { plane, creator: new PodCreator(plane.connection, NAMESPACE), watch, size };
  await life(stage, setOf(size.rounds, size)); // warms up
  const rounds: { first: Coming; again: Coming }[] = [];
  for (let round = 0; round < size.rounds; round++) {
    setup.say(`round ${round + 1} of ${size.rounds}`);
    rounds.push(await life(stage, setOf(round, size)));
  }
  return reportRecreation(rounds);
}

function nodeOf(n: number): string {
  return `node-${n % NODES}`;
}

function setOf(round: number, { pods }: Size): readonly Pinned[] {
  return Array.from({ length: pods }, (_, i) => {
    const n = round * pods + i;
    return { name: `pinned-${n}`, address: addressAt(PINNED_FROM + n), node: nodeOf(i) };
  });
}

/** They come, go, come again with the same names on the same nodes, and go. */
async function life(stage: Stage, set: readonly Pinned[]): Promise<{ first: Coming; again: Coming }> {
  const names = set.map(({ name }) => name);
  const comings: Coming[] = [];
  for (let i = 0; i < 2; i++) {
    comings.push(await come(stage, set));
    await stage.creator.remove(names);
    await pause(stage.size.settleMs);
  }
  const [first, again] = comings;
  if (first === undefined || again === undefined) throw new RangeError("they come twice");
  return { first, again };
}

async function come({ plane, creator, watch, size }: Stage, set: readonly Pinned[]): Promise<Coming> {
  const before = await admissionTimes(plane.connection, "berth");
  const made: { readonly pod: CreatedPod; readonly at: number; readonly pinned: Pinned }[] = [];
  let next = 0;
  const began = performance.now();
  const create = async () => {
    const pinned = set[next++];
    if (pinned === undefined) return;
    const annotations = { "berth.dev/ips": pinned.address, "berth.dev/sticky": "true" };
    const pod = await creator.make(pinned.name, annotations, pinned.node);
    made.push({ pod, at: performance.now(), pinned });
  };
  const ms = (set.length * 1000) / size.perSecond;
  const times = await openLoop(create, LINES, { perSecond: size.perSecond, ms });
  const reached = (made.length * 1000) / (performance.now() - began);
  const bound = await Promise.all(
    made.map(async ({ pod, at, pinned }) => {
      const seen = await eventually(`${pod.name} is bound`, () => watch.of(pod.uid), BOUND_MS);
      const moved = pod.addresses !== pinned.address || seen.addresses.join() !== pinned.address;
      return { ms: Math.max(0, seen.at - at), moved };
    }),
  );
  const after = await admissionTimes(plane.connection, "berth");
  const waited = ({ mutating, validating }: typeof after) => 1000 * (mutating.sum + validating.sum);
  return {
    pods: made.length,
    admissionMs: waited(after) - waited(before),
    bindings: bound.map((one) => one.ms),
    times,
    reached,
    changed: bound.filter(({ moved }) => moved).length,
  };
}
