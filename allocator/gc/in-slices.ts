// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../base/ports.ts";

/** Works on the records part by part. Others have their turn between two parts; what changes meanwhile is found out by whoever acts. */
export async function inSlices<R, P>(
  clock: Pick<Clock, "sleep">,
  records: Iterable<R>,
  size: number,
  work: (part: readonly R[]) => P | Promise<P>,
): Promise<P[]> {
  const results: P[] = [];
  let part: R[] = [];
  for (const record of records) {
    if (part.push(record) < size) continue;
    results.push(await work(part));
    part = [];
    await clock.sleep(0);
  }
  if (part.length > 0) results.push(await work(part));
  return results;
}
