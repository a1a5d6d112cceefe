// SPDX-License-Identifier: Apache-2.0

/** `1 pool`, `2 pools`, `0 addresses`: for messages. */
export function counted(n: number | bigint, one: string, many = `${one}s`): string {
  return `${n} ${Number(n) === 1 ? one : many}`;
}
