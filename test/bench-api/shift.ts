// SPDX-License-Identifier: Apache-2.0

/** When to work, and what of it counts. Milliseconds; `startAt` by the host's monotonic clock, which its processes share. */
export interface Hours {
  readonly startAt: number;
  /** Work that does not count: the first ones meet an API server that nobody keeps busy. */
  readonly warmMs: number;
  readonly ms: number;
}

export interface Shift {
  /** Of what was done within the time that counts: how long each took, milliseconds. */
  readonly times: readonly number[];
  /** How often those had to begin again, together. */
  readonly again: number;
  /** All that was done, before and after that time too. */
  readonly done: number;
}

/** Does one piece of work; undefined: it was broken off. */
export type Work = (worker: number, n: number, signal: AbortSignal) => Promise<number | undefined>;

/**
 * Workers that go on without a pause until the time is over. What ends within the time that counts is counted: a rate
 * that neither the first nor the last ones, who have less competition, make look better.
 */
export async function workShift(
  work: Work,
  workers: number,
  hours: Hours,
  clock: { monotonic(): number; sleep(ms: number): Promise<void> },
): Promise<Shift> {
  const begin = hours.startAt + hours.warmMs;
  const end = begin + hours.ms;
  const over = new AbortController();
  const times: number[] = [];
  let [again, done] = [0, 0];
  await clock.sleep(hours.startAt - clock.monotonic());
  const timer = clock.sleep(end - clock.monotonic()).then(() => over.abort());
  const one = async (worker: number) => {
    for (let n = 0; clock.monotonic() < end; n++) {
      const since = clock.monotonic();
      const repeated = await work(worker, n, over.signal);
      const now = clock.monotonic();
      if (repeated === undefined) continue;
      done++;
      if (now < begin || now >= end) continue;
      times.push(now - since);
      again += repeated;
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, worker) => one(worker)));
  await timer;
  return { times, again, done };
}
