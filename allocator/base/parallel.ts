// SPDX-License-Identifier: Apache-2.0

/**
 * Works on all items, so many at once, and gives what came of each, in their order. When one rejects, no more are begun, those
 * under way end, and it rejects with the first fault.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const faults: unknown[] = [];
  const rest = items.entries();
  const worker = async () => {
    for (const [i, item] of rest) {
      if (faults.length > 0) return;
      try {
        results[i] = await work(item);
      } catch (error) {
        faults.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (faults.length > 0) throw faults[0];
  return results;
}
