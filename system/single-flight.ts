// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../allocator/base/ports.ts";

/** Those who ask while it is under way get what the first one gets. */
export function singleFlight<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}

/** The same, and those who ask within so long after it. */
export function remembered<T>(
  ask: () => Promise<T>,
  clock: Pick<Clock, "monotonic">,
  ms: number,
): () => Promise<T> {
  let known: { readonly value: T; readonly until: number } | undefined;
  const asking = singleFlight(async () => {
    const value = await ask();
    known = { value, until: clock.monotonic() + ms };
    return value;
  });
  return async () => (known !== undefined && clock.monotonic() < known.until ? known.value : await asking());
}
