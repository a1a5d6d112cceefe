// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";

/** Asks once on one of several lines. */
export type Send = (line: number) => Promise<void>;

/** As many at once as there are lines, each again as soon as it is answered. */
export interface ClosedLoad {
  readonly seconds: number;
  /** Answers in a second. */
  readonly rate: number;
}

/** Asks on every line until the time is over. */
export async function closedLoop(send: Send, lines: number, ms: number): Promise<ClosedLoad> {
  const began = performance.now();
  let answers = 0;
  const work = async (line: number) => {
    while (performance.now() - began < ms) {
      await send(line);
      answers++;
    }
  };
  await Promise.all(Array.from({ length: lines }, (_, line) => work(line)));
  const seconds = (performance.now() - began) / 1000;
  return { seconds, rate: answers / seconds };
}

/**
 * Asks at a fixed rate, whether answers come or not, and answers with the milliseconds of each: from the moment at
 * which it was due, so that whoever waits for a free line because the others are stuck waits on the clock too.
 */
export async function openLoop(
  send: Send,
  lines: number,
  at: { readonly perSecond: number; readonly ms: number },
): Promise<readonly number[]> {
  const free = Array.from({ length: lines }, (_, line) => line);
  const due: number[] = [];
  const times: number[] = [];
  const failures: unknown[] = [];
  let underWay = 0;
  const serve = () => {
    for (let line = free.pop(); line !== undefined; line = free.pop()) {
      const since = due.shift();
      if (since === undefined) {
        free.push(line);
        return;
      }
      void one(line, since);
    }
  };
  const one = async (line: number, since: number) => {
    underWay++;
    try {
      await send(line);
      times.push(performance.now() - since);
    } catch (error) {
      failures.push(error);
    }
    underWay--;
    free.push(line);
    serve();
  };
  const began = performance.now();
  const count = Math.round((at.perSecond * at.ms) / 1000);
  for (let i = 0; i < count; ) {
    const now = performance.now();
    // The timer fires late by up to a millisecond, which is nobody's but ours.
    for (; i < count && began + (i * 1000) / at.perSecond <= now; i++) due.push(now);
    serve();
    await pause(1);
  }
  while (due.length + underWay > 0) await pause(1);
  if (failures.length > 0) throw failures[0];
  return times;
}
