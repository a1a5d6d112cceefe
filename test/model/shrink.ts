// SPDX-License-Identifier: Apache-2.0

/**
 * A schedule from which no single step can be dropped, and no turn moved next to the one before of the same process,
 * without losing what `holds` says of it: short, and with few changes from one process to another.
 */
export async function shrink(
  schedule: readonly number[],
  holds: (schedule: readonly number[]) => Promise<boolean>,
): Promise<readonly number[]> {
  let best = schedule;
  for (let better = true; better; ) {
    better = false;
    for (const candidate of simpler(best)) {
      if (!(await holds(candidate))) continue;
      best = candidate;
      better = true;
      break;
    }
  }
  return best;
}

function* simpler(schedule: readonly number[]): Generator<readonly number[]> {
  for (let i = schedule.length - 1; i >= 0; i--) yield schedule.toSpliced(i, 1);
  for (let i = 1; i < schedule.length; i++) {
    const turn = schedule[i] as number;
    const before = schedule.lastIndexOf(turn, i - 1);
    if (before < 0 || before === i - 1) continue;
    const joined = schedule.toSpliced(i, 1).toSpliced(before + 1, 0, turn);
    if (changes(joined) < changes(schedule)) yield joined;
  }
}

function changes(schedule: readonly number[]): number {
  return schedule.filter((turn, i) => i > 0 && schedule[i - 1] !== turn).length;
}
