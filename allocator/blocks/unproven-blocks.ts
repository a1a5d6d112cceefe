// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../base/ports.ts";
import type { Block } from "../model/block.ts";
import type { Stored } from "../store/store.ts";
import type { Holding } from "./block-plan.ts";
import { holdingOf, SILENT_MS } from "./holdings.ts";

/**
 * Which blocks their nodes' agents have not said to have, and since when, by what one process has seen. Nothing rests on it but who is
 * given more.
 */
export class UnprovenBlocks {
  readonly #clock: Clock;
  readonly #areProven: boolean;
  #since = new Map<string, number>(); // UID of a block -> since when, on the monotonic clock

  /** `areProven`: agents say of each block that they have it, before they give from it. */
  constructor(clock: Clock, areProven: boolean) {
    this.#clock = clock;
    this.#areProven = areProven;
  }

  /** To be told of all blocks, pass by pass. */
  see(blocks: Iterable<Stored<"block">>): void {
    if (!this.#areProven) return;
    const now = this.#clock.monotonic();
    const seen = new Map<string, number>();
    for (const { uid, record } of blocks)
      if (record.granted === true && !isProven(record)) seen.set(uid, this.#since.get(uid) ?? now);
    this.#since = seen;
  }

  holdingOf({ uid, record }: Stored<"block">): Holding | "cooling" {
    const holding = holdingOf(record, this.#clock.now());
    if (holding === "cooling" || !this.#areProven || isProven(record)) return holding;
    const now = this.#clock.monotonic();
    const isSilent = now - (this.#since.get(uid) ?? now) >= SILENT_MS;
    return { ...holding, unproven: isSilent ? "silent" : "new" };
  }
}

function isProven({ status, node }: Block): boolean {
  return status?.node === node;
}
