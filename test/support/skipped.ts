// SPDX-License-Identifier: Apache-2.0
import { it } from "node:test";

/** Instead of a file's tests, when something that they need is not on this machine: says so, and counts as one that was skipped. */
export function skipped(why: string): void {
  console.log(`skipped: ${why}`);
  it(why, { skip: why });
}
