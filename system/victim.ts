// SPDX-License-Identifier: Apache-2.0

interface Candidate {
  readonly hasAsked: boolean;
  /** Higher: opened or used later. */
  readonly used: number;
}

interface Choice<T> {
  readonly victim: T;
  readonly isSilent: boolean;
  /** As many of its peer could go as well. */
  readonly count: number;
}

/**
 * Which connection goes, of those of each peer that may, in the order in which they were last used: one that never asked anything, of
 * the peer with the most such; else of the peer with the most of any kind. Of one peer, and of peers with as many, the one that was not
 * used for longest.
 */
export function victimOf<T extends Candidate>(peers: Iterable<readonly T[]>): T | undefined {
  let chosen: Choice<T> | undefined;
  for (const idle of peers) {
    const choice = choiceOf(idle);
    if (choice !== undefined && (chosen === undefined || goesBefore(choice, chosen))) chosen = choice;
  }
  return chosen?.victim;
}

function choiceOf<T extends Candidate>(idle: readonly T[]): Choice<T> | undefined {
  const silent = idle.filter(({ hasAsked }) => !hasAsked);
  const isSilent = silent.length > 0;
  const some = isSilent ? silent : idle;
  const [victim] = some;
  return victim === undefined ? undefined : { victim, isSilent, count: some.length };
}

function goesBefore<T extends Candidate>(one: Choice<T>, other: Choice<T>): boolean {
  if (one.isSilent !== other.isSilent) return one.isSilent;
  if (one.count !== other.count) return one.count > other.count;
  return one.victim.used < other.victim.used;
}
