// SPDX-License-Identifier: Apache-2.0

import { isStoreFault, messageOf } from "../../../allocator/base/errors.ts";
import type { Logger } from "../../../allocator/base/ports.ts";

/** So many faults that may be the API server's in one pass, and more than what went well: then it is not the nodes. */
const MOST = 16;

/** What is wrong with one node keeps no other node from its addresses: it is logged, and tried again in the next pass. */
export class NodeFaults {
  readonly #log: Pick<Logger, "error">;
  #faults = 0;
  #done = 0;

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  /** A pass begins. */
  begin(): void {
    this.#faults = 0;
    this.#done = 0;
  }

  /** Undefined: it failed. Throws what is not the node's. */
  async of<T>(node: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act();
      this.#done++;
      return result;
    } catch (error) {
      if (isStoreFault(error)) this.#faults++;
      if (this.#faults >= MOST && this.#faults > this.#done) throw error;
      this.#log.error("addresses of a Cilium node cannot be settled; it is tried again", {
        node,
        error: messageOf(error),
      });
      return undefined;
    }
  }
}
