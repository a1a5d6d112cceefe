// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../allocator/base/ports.ts";

/** What setTimeout can count: a longer wait wraps round and fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clocks of this host. `monotonic` is CLOCK_MONOTONIC since boot, so that two processes of a host agree. */
export function createClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => Number(process.hrtime.bigint()) / 1e6,
    sleep,
    alarm,
  };
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let left = Number.isNaN(ms) ? 0 : ms;
  do {
    if (signal?.aborted === true) return;
    const part = Math.min(Math.max(left, 0), LONGEST_TIMER_MS);
    await pause(part, signal);
    left -= part;
  } while (left > 0);
}

/** For LONGEST_TIMER_MS at most. What should have rung rings at once: of a negative time Node warns on stderr, amid the log. */
function alarm(ms: number, ring: () => void): () => void {
  const timer = setTimeout(ring, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS));
  return () => clearTimeout(timer);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
