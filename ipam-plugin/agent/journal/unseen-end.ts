// SPDX-License-Identifier: Apache-2.0
import { processIn } from "./host.ts";

/**
 * Why its host does not see that a container has ended which no DEL came for, in words; undefined: it does. `netns`: the path of its network
 * namespace; undefined: nothing was seen there at its ADD.
 */
export function unseenEnd(netns: string | undefined): string | undefined {
  if (netns === undefined) return "nothing was to be seen of its network namespace";
  const named = processIn(netns);
  return named === undefined ? undefined : `a process named its network namespace: ${named}`;
}

/** What a person does who knows that such a container has ended. */
export function tellOfEnd(node: string): string {
  return `send its DEL on host ${node}, or boot that host (docs/etcd.md, A container whose end nobody sees)`;
}
