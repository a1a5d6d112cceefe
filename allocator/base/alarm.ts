// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "./ports.ts";

/** Calls `ring` after `ms`, unless what it gives is called before: by the clock's alarm where it has one. */
export function alarmOf(clock: Pick<Clock, "sleep" | "alarm">, ms: number, ring: () => void): () => void {
  if (clock.alarm !== undefined) return clock.alarm(ms, ring);
  const done = new AbortController();
  void clock.sleep(ms, done.signal).then(() => {
    if (!done.signal.aborted) ring();
  });
  return () => done.abort("done"); // a reason of one's own costs no stack trace
}
