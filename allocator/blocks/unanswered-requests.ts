// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../base/ports.ts";
import { returnedOf } from "../model/block.ts";
import type { Stored } from "../store/store.ts";

interface Unanswered {
  /** Addresses that were asked for, and that came. */
  readonly said: string;
  /** On the monotonic clock. */
  readonly since: number;
}

/**
 * Of which blocks single addresses were asked for and did not come: by what one process has seen. Nothing rests on it but who is asked
 * next.
 */
export class UnansweredRequests {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #longMs: number;
  readonly #requests = new Map<string, Unanswered>(); // UID of a block -> since when nothing came of it

  constructor(clock: Pick<Clock, "monotonic">, longMs: number) {
    this.#clock = clock;
    this.#longMs = longMs;
  }

  /** To be told of all blocks, pass by pass. */
  see(blocks: Iterable<Stored<"block">>): void {
    const now = this.#clock.monotonic();
    const there = new Set<string>();
    for (const { uid, record } of blocks) {
      const returned = returnedOf(record).length;
      const { recalledAddresses = 0 } = record;
      if (recalledAddresses <= returned) continue;
      there.add(uid);
      const said = `${recalledAddresses} ${returned}`;
      if (this.#requests.get(uid)?.said !== said) this.#requests.set(uid, { said, since: now });
    }
    for (const uid of this.#requests.keys()) if (!there.has(uid)) this.#requests.delete(uid);
  }

  /** Its owner was asked some while ago, and nothing has come since. */
  has({ uid }: Pick<Stored<"block">, "uid">): boolean {
    const request = this.#requests.get(uid);
    return request !== undefined && this.#clock.monotonic() - request.since >= this.#longMs;
  }
}
