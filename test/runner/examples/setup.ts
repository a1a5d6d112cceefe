// SPDX-License-Identifier: Apache-2.0
// What files share, and what takes a moment to end: node's runner goes on until it has. Used by run.test.ts.

export function globalTeardown(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}
