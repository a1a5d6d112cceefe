// SPDX-License-Identifier: Apache-2.0
import { ServerTimes } from "../lifecycle/server-times.ts";
import type { Block } from "../model/block.ts";
import type { Stored } from "../store/store.ts";

/**
 * Blocks with times that are past, for decisions alone: what is written keeps the times that it has. One that is ahead counts from when
 * this process met it first (ADR 0014): else a block cools, and its owner counts as just asked, for as long as the clocks differ.
 */
export class BlockTimes {
  readonly #stamps = new ServerTimes();

  of(stored: Stored<"block">, now: number): Stored<"block"> {
    const { releasedAt, recalledAt } = stored.record;
    if (releasedAt === undefined && recalledAt === undefined) return stored;
    const past = (field: string, stamp: number) =>
      this.#stamps.past(`${stored.key} ${stored.uid} ${field}`, stamp, now);
    const times: Pick<Block, "releasedAt" | "recalledAt"> = {
      ...(releasedAt !== undefined && { releasedAt: past("releasedAt", releasedAt) }),
      ...(recalledAt !== undefined && { recalledAt: past("recalledAt", recalledAt) }),
    };
    return { ...stored, record: { ...stored.record, ...times } };
  }
}
