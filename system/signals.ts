// SPDX-License-Identifier: Apache-2.0

/** The first signal that tells the process to end; a second one ends it at once. */
export function untilEndingSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve(signal));
  });
}

/** The same, for what is aborted by it. */
export function endingSignal(): AbortSignal {
  const controller = new AbortController();
  void untilEndingSignal().then(() => controller.abort());
  return controller.signal;
}
