// SPDX-License-Identifier: Apache-2.0
import { alarmOf } from "../../../allocator/base/alarm.ts";
import type { Clock } from "../../../allocator/base/ports.ts";

/** Runs `work` with a signal that aborts after `ms`, or when one of `signals` does. It is up to `work` to obey. */
export async function within<T>(
  limit: { readonly ms: number; readonly clock: Clock; readonly signals: readonly AbortSignal[] },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const abort = () => late.abort(limit.signals.find(({ aborted }) => aborted)?.reason);
  // not AbortSignal.any, whose weak references cost each ADD more than these listeners
  for (const signal of limit.signals) {
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }
  const stop = alarmOf(limit.clock, limit.ms, abort);
  try {
    return await work(late.signal);
  } finally {
    for (const signal of limit.signals) signal.removeEventListener("abort", abort);
    stop();
  }
}

/** What `work` gives, or undefined as soon as the signal aborts; `work` goes on then and nobody looks at it. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const abort = () => resolve(undefined);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
    work.catch(() => undefined); // a rejection after the abort is nobody's
  }
}
