// SPDX-License-Identifier: Apache-2.0
import fc from "fast-check";
import type { Disks } from "./journal-disk.ts";
import type { FaultInjection } from "./setting.ts";
import { simulate } from "./simulation.ts";
import { type Step, stepsOf, USUAL, WITH_BLOCKS } from "./steps.ts";
import type { Tally } from "./tally.ts";
import { tellSteps, traceOf } from "./trace.ts";

export interface Trial {
  readonly disks: Disks;
  readonly tally: Tally;
  readonly runs: number;
  readonly seed: number;
  /** Where in the runs of that seed, as a failure told it: that run alone is made again. */
  readonly path?: string;
  readonly injection?: FaultInjection;
  /** Agents serve pods that ask for nothing out of blocks. */
  readonly blocks?: boolean;
  /** A block is a single address. */
  readonly singles?: boolean;
  /** Some pods ask for addresses of two interfaces. */
  readonly interfaces?: boolean;
  /** Other steps than usual. */
  readonly lives?: fc.Arbitrary<readonly Step[]>;
  /** The first failure is enough: it is not made smaller. */
  readonly unshrunk?: boolean;
}

/** A run that broke an invariant, as small as it could be made. */
export interface Failure {
  readonly violation: string;
  readonly seed: number;
  readonly path: string;
  readonly runs: number;
  readonly steps: readonly Step[];
}

/** A failure that is not as small as it could be by then is told as it is. Until one is found nobody is in a hurry. */
const LIMIT_MS = 400_000;

/** Makes runs until one breaks an invariant. The same seed makes the same runs, on any machine. */
export async function trial({
  disks,
  tally,
  injection = {},
  blocks = false,
  singles = false,
  interfaces = false,
  lives = stepsOf(blocks ? WITH_BLOCKS : USUAL),
  ...of
}: Trial): Promise<Failure | undefined> {
  const property = fc.asyncProperty(lives, async (steps) => {
    const { violation } = await simulate(steps, { disks, tally, injection, blocks, singles, interfaces });
    if (violation !== undefined) throw new Error(violation);
  });
  const { seed } = of;
  const again = of.path === undefined ? {} : { path: of.path };
  const found = await fc.check(property, { numRuns: of.runs, endOnFailure: true, seed, ...again });
  if (!found.failed) return undefined;
  const isToBeSmall = of.unshrunk !== true && of.path === undefined && found.counterexamplePath !== null;
  const smaller = isToBeSmall
    ? await fc.check(property, {
        ...{ numRuns: 1, seed, path: found.counterexamplePath },
        interruptAfterTimeLimit: LIMIT_MS,
      })
    : found;
  const details = smaller.failed ? smaller : found;
  if (details.counterexample === null) throw new Error("fast-check gave up");
  return {
    violation:
      details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance),
    seed: details.seed,
    path: details.counterexamplePath ?? "",
    runs: found.numRuns,
    steps: details.counterexample[0],
  };
}

/** The failure for people: which invariant, how to see it again, what was drawn, and what happened. */
export async function describe(
  failure: Failure,
  options: Pick<Trial, "disks" | "injection" | "blocks" | "singles" | "interfaces">,
): Promise<string> {
  const { violation, seed, path, runs, steps } = failure;
  const { trace } = await simulate(steps, { ...options, tells: true });
  return [
    `run ${runs} of seed ${seed} broke an invariant: ${violation}`,
    `again: make simulate SEED=${seed} AT=${path}${options.blocks === true ? " BLOCKS=1" : ""}${options.interfaces === true ? " INTERFACES=1" : ""}`,
    "",
    ...tellSteps(steps),
    "",
    ...traceOf(trace),
    "",
    violation,
  ].join("\n");
}
