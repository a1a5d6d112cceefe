// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import type { SeededRandom } from "../support/random.ts";
import type { Victim } from "./chaos-cluster.ts";
import type { ExpectedUse } from "./chaos-expected.ts";
import type { ChaosTally } from "./chaos-tally.ts";

/** Between two strikes. */
const [LEAST_MS, MOST_MS] = [300, 4_000];
const DOWN_MS = 3_000;
const FROZEN_MS = 6_000;
/** Longer than a lease. */
const LONG_FROZEN_MS = 17_000;

interface Disorder {
  readonly victims: readonly Victim[];
  readonly random: SeededRandom;
  readonly expected: ExpectedUse;
  readonly tally: ChaosTally;
}

interface Blow {
  readonly victim: Victim;
  readonly way: "end" | "freeze";
  readonly signal: NodeJS.Signals;
  /** Of the longest time that it may be away, 0 to 1. */
  readonly share: number;
}

/** Strikes one process after the other, sometimes two at once, until it is to stop; then all of them run again. */
export async function disorder(at: Disorder, stop: AbortSignal): Promise<void> {
  const { random, tally } = at;
  const blows = blowsFor(at);
  while (!stop.aborted) {
    await pause(LEAST_MS + random.below(MOST_MS - LEAST_MS), undefined, { signal: stop }).catch(() => {});
    if (stop.aborted) return;
    const first = blows.next().value;
    const second = random.below(4) === 0 ? blows.next().value : undefined;
    if (second === undefined || second.victim === first.victim) {
      await strike(at, first);
    } else {
      tally.note("two at once");
      await Promise.all([strike(at, first), strike(at, second)]);
    }
  }
}

/** Everybody in turn, in another order each time; what happens in the first round is that they end. */
function* blowsFor({ victims, random }: Disorder): Generator<Blow, never, void> {
  for (let round = 0; ; round++) {
    const left = [...victims];
    while (left.length > 0) {
      const [victim] = left.splice(random.below(left.length), 1);
      const freezes = random.below(4) === 0 && round > 0 && victim?.freeze !== undefined;
      const signal = random.below(4) === 0 ? "SIGTERM" : "SIGKILL";
      const share = random.fraction();
      if (victim !== undefined) yield { victim, way: freezes ? "freeze" : "end", signal, share };
    }
  }
}

async function strike({ expected, tally }: Disorder, { victim, way, signal, share }: Blow): Promise<void> {
  const { name } = victim;
  tally.note(`${way} ${name}`);
  if (way === "freeze") {
    // one that sleeps longer than its lease wakes as a leader who is none
    const ms = name.startsWith("berth-webhook") && share > 0.75 ? LONG_FROZEN_MS : share * FROZEN_MS;
    expected.tell(`freeze ${name} for ${Math.round(ms)} ms`);
    victim.freeze?.();
    await pause(ms);
    victim.thaw?.();
    return;
  }
  expected.tell(`${signal} ${name}`);
  await victim.end(signal);
  await pause(share * DOWN_MS);
  await victim.restore();
  expected.tell(`${name} is back`);
}
