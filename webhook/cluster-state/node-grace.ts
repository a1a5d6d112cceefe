// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";
import { NODE_GRACE_MS } from "../../allocator/model/cluster-state.ts";

/** Nodes whose absence is remembered, so that a cluster which makes and deletes them for years does not fill the memory. */
const MOST = 10_000;

/** Nodes that are watched. */
interface Watched {
  get(name: string): unknown;
  onChange(heard: (name: string, now: unknown) => void): () => void;
}

/** Since when nodes were seen absent by this process; after a restart the grace begins anew. */
export class NodeAbsences {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #since = new Map<string, number>(); // node -> monotonic time at which it was first seen absent
  #isShown: (node: string) => boolean = () => false;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Hears of each node that comes or goes, until the function that is returned is called. */
  follow(nodes: Watched): () => void {
    this.#isShown = (node) => nodes.get(node) !== undefined;
    return nodes.onChange((name, now) => {
      if (now === undefined) this.absent(name);
      else this.present(name);
    });
  }

  /** The node was seen: a grace that ran is void. */
  present(node: string): void {
    this.#since.delete(node);
  }

  /**
   * The node was not found. True when its grace is over. That of a node which the watch shows has not begun: an answer of before the
   * node came back may be read after the watch has told of it, and nothing would void what began then.
   */
  absent(node: string): boolean {
    if (this.#isShown(node)) return false;
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
