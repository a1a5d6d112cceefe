// SPDX-License-Identifier: Apache-2.0
// A simulation that finds nothing may be blind: each of these breaks one thing that the invariants rest on.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import type fc from "fast-check";
import { skipAllBut } from "../support/runs.ts";
import { STALL_WAIT } from "./faults.ts";
import { Disks } from "./journal-disk.ts";
import {
  answeringEarly,
  blindToBlocks,
  blindToEnds,
  fencingAll,
  forgetful,
  givingFromAll,
  grantingBlindly,
  inventoryOf,
  mistakingSandboxes,
  releasingUnowned,
  rememberingPods,
  removingAnything,
  replacingAnything,
  servingFromAnyJournal,
  servingFromOlderCopy,
  servingWithoutAsking,
  storeOf,
  takenBackUnasked,
  takingAnyway,
  takingNamesakes,
  trustingCache,
  trustingHosts,
  withoutMark,
  withoutReadingBack,
  withoutReport,
  writingAtReview,
  yieldingToNamesakes,
} from "./mutations.ts";
import { trial } from "./property.ts";
import type { FaultInjection } from "./setting.ts";
import { type Step, stepsOf } from "./steps.ts";
import { Tally } from "./tally.ts";

interface Mutation {
  readonly name: string;
  readonly injection: FaultInjection;
  /** Agents serve pods that ask for nothing out of blocks. */
  readonly blocks?: true;
  /** Where it is most often to be met, when that is not everywhere. */
  readonly lives?: fc.Arbitrary<readonly Step[]>;
}

/** A reserver must be collected between its two creates, by another one that asks for the same. */
const COLLECTED_BETWEEN = stepsOf({ race: 20, force: 15, wait: 10, calm: 10 }, [0.1]);

/** The same, and he goes on in time to be heard: time moves on by as much as a call stalls. */
const COLLECTED_IN_TIME = COLLECTED_BETWEEN.map((steps) =>
  steps.map((step) => (step.kind === "wait" ? { ...step, a: STALL_WAIT } : step)),
);

/** Pods, and blocks of the pool that they ask for. */
const WITH_BLOCKS = stepsOf({
  block: 20,
  pod: 20,
  delete: 10,
  apply: 10,
  add: 10,
  wait: 5,
  deaf: 5,
  calm: 5,
});

/** Pods without an owner under the names of ordinals, whose StatefulSets come and go. */
const AMONG_NAMESAKES = stepsOf({
  namesake: 20,
  twice: 10,
  apply: 20,
  withdraw: 10,
  pod: 10,
  wait: 10,
  calm: 5,
});

const MUTATIONS: readonly Mutation[] = [
  {
    name: "the garbage collector does not mark",
    injection: storeOf("webhook", withoutMark),
    lives: COLLECTED_BETWEEN,
  },
  {
    name: "release does not look whether the claim is at rest",
    injection: inventoryOf("webhook", fencingAll),
  },
  { name: "bind ignores invariant 3", injection: inventoryOf("agent", fencingAll) },
  {
    name: "a DEL does not compare container ids",
    injection: { claimSource: (claimSource, { store }) => mistakingSandboxes(claimSource, store) },
  },
  { name: "the journal answers before its commit", injection: { disk: answeringEarly } },
  {
    name: "the reserver does not read back",
    injection: storeOf("webhook", withoutReadingBack),
    lives: COLLECTED_IN_TIME,
  },
  {
    name: "the mirror is trusted instead of the store",
    injection: storeOf("webhook", trustingCache),
  },
  { name: "what nobody has seen is removed", injection: storeOf("webhook", removingAnything) },
  { name: "the last writer wins", injection: storeOf("webhook", replacingAnything) },
  {
    name: "an address that is taken is taken anyway",
    injection: storeOf("webhook", takingAnyway),
  },
  { name: "nobody reports that a sandbox is up", injection: storeOf("agent", withoutReport) },
  { name: "an agent does not read its journal", injection: { disk: forgetful } },
  { name: "a review writes what only its pod may", injection: writingAtReview },
  { name: "an agent serves from any journal", injection: servingFromAnyJournal },
  { name: "an agent serves from an older copy of its journal", injection: servingFromOlderCopy },
  { name: "an agent without a mark does not ask the runtime", injection: servingWithoutAsking },
  {
    name: "a pod of a Deployment that asks by pool leaves its claim to the Deployment",
    injection: inventoryOf("webhook", rememberingPods),
  },
  { name: "a pod that has ended keeps what it had", injection: inventoryOf("webhook", blindToEnds) },
  {
    name: "a pod by itself takes the claim of the ordinal that it is called like",
    injection: { inventory: yieldingToNamesakes },
  },
  {
    name: "a claim is kept for a pod that is only called like it, and was given none",
    injection: inventoryOf("webhook", takingNamesakes),
    lives: AMONG_NAMESAKES,
  },
  { name: "an owner that nobody reads is taken for gone", injection: releasingUnowned },
  {
    name: "a binder does not look for blocks of nodes, nor does who reserves",
    injection: { store: blindToBlocks },
    lives: WITH_BLOCKS,
  },
  {
    name: "a block is granted without a look at what is reserved in it",
    injection: storeOf("webhook", grantingBlindly),
    lives: WITH_BLOCKS,
  },
  {
    name: "nobody who reserves or binds looks for blocks that agents give from",
    ...{ injection: { store: blindToBlocks }, blocks: true, lives: WITH_BLOCKS },
  },
  {
    name: "a controller takes a block back without its agent's word",
    ...{ injection: { blockEvidence: takenBackUnasked }, blocks: true },
  },
  {
    name: "an agent gives from blocks of other nodes",
    ...{ injection: { blockSource: givingFromAll }, blocks: true },
  },
  { name: "every process goes by its host's wall clock", injection: trustingHosts },
];

/** Each is found within this many runs of the seed: most at once, the rarest after some three hundred. */
const MOST_RUNS = 3_000;
const SEED = 1;
/** Not that something threw: that would be noticed without a judge. */
const JUDGED = /^(invariant \d|audit): /;

describe("the simulation finds that", () => {
  const disks = new Disks();
  after(() => disks.close());

  for (const [n, { name, ...mutation }] of MUTATIONS.entries()) {
    it(name, { skip: skipAllBut(2, MUTATIONS.length, n) }, async (t) => {
      const failure = await trial({
        disks,
        tally: new Tally(),
        ...mutation,
        runs: MOST_RUNS,
        seed: SEED,
        unshrunk: true,
      });
      assert.ok(failure !== undefined, `${MOST_RUNS} runs broke no invariant`);
      assert.match(failure.violation, JUDGED);
      t.diagnostic(`run ${failure.runs}: ${failure.violation}`);
    });
  }
});
