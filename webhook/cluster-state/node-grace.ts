// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";
import { NODE_GRACE_MS } from "../../allocator/model/cluster-state.ts";

/** Nodes whose absence is remembered, so that a cluster which makes and deletes them for years does not fill the memory. */
const MOST = 10_000;

/** Since when nodes were seen absent by this process; after a restart the grace begins anew. */
export class NodeAbsences {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #since = new Map<string, number>(); // node -> monotonic time at which it was first seen absent

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Hears of each node that comes or goes, until the function that is returned is called. */
  follow(nodes: { onChange(heard: (name: string, now: unknown) => void): () => void }): () => void {
    return nodes.onChange((name, now) => {
      if (now === undefined) this.absent(name);
      else this.present(name);
    });
  }

  /** The node was seen: a grace that ran is void. */
  present(node: string): void {
    this.#since.delete(node);
  }

  /** The node was not found at this moment. True when its grace is over. */
  absent(node: string): boolean {
    const now = this.#clock.monotonic();
    const since = this.#since.get(node);
    if (since !== undefined) return now - since >= NODE_GRACE_MS;
    this.#since.set(node, now);
    for (const oldest of this.#since.keys()) {
      if (this.#since.size <= MOST) break;
      this.#since.delete(oldest);
    }
    return false;
  }
}
