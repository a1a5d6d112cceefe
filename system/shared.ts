// SPDX-License-Identifier: Apache-2.0

/** Those who ask while it is under way get what the first one gets. */
export function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}
