// SPDX-License-Identifier: Apache-2.0

/** Whether two lists without repetitions have the same in them: the order of a pod's addresses means nothing. */
export function sameSet(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one) => others.includes(one));
}
