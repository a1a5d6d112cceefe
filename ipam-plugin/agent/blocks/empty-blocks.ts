// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../../allocator/base/ports.ts";
import { bitsOf } from "../../../allocator/ip/address.ts";
import { blocksAhead } from "../../../allocator/pool/blocks.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { BlockFollower } from "./block-follower.ts";
import type { BlockSpace } from "./block-space.ts";
import type { NodeBlocks } from "./node-blocks.ts";

/** How long a block that nobody has asked back stays empty before it is given back. */
export const EMPTY_MS = 300_000;

interface EmptyBlocksOptions {
  readonly blocks: Pick<NodeBlocks, "all">;
  readonly follower: Pick<BlockFollower, "pool">;
  readonly clock: Pick<Clock, "monotonic">;
}

interface Emptiness {
  /** How many addresses of the block had been given by then. */
  readonly given: number;
  /** On the monotonic clock. */
  readonly since: number;
}

/** Which of this node's blocks go back: by what one process has seen of them. */
export class EmptyBlocks {
  readonly #options: EmptyBlocksOptions;
  readonly #empty = new Map<string, Emptiness>(); // UID of a block -> since when it has been seen empty

  constructor(options: EmptyBlocksOptions) {
    this.#options = options;
  }

  /** Asked back, of no use as all of it was given back one by one, or long empty while there is room without it. */
  isDue({ uid, record }: Stored<"block">, space: BlockSpace): boolean {
    const now = this.#options.clock.monotonic();
    const seen = this.#empty.get(uid);
    if (space.used > 0) {
      this.#empty.delete(uid);
      return false;
    }
    if (record.recalledAt !== undefined || space.usable === 0) return true;
    if (seen?.given !== space.given) {
      this.#empty.set(uid, { given: space.given, since: now });
      return false;
    }
    return now - seen.since >= EMPTY_MS && this.#roomBeside(space) >= this.#keptOf(space);
  }

  /** `there`: UIDs of the blocks that there are. */
  forgetAllBut(there: ReadonlySet<string>): void {
    for (const uid of this.#empty.keys()) if (!there.has(uid)) this.#empty.delete(uid);
  }

  /** As much room as the blocks that a node has ahead, besides one that it gives back. */
  #keptOf(space: BlockSpace): number {
    return blocksAhead(this.#options.follower.pool(space.block.pool)) * sizeOf(space);
  }

  #roomBeside({ block, family }: BlockSpace): number {
    let room = 0;
    for (const { space, state } of this.#options.blocks.all()) {
      const isOther = space.block.pool === block.pool && space.family === family && space.block !== block;
      if (isOther && state === "giving") room += space.available;
    }
    return room;
  }
}

function sizeOf({ network }: BlockSpace): number {
  return 2 ** (bitsOf(network.family) - network.prefixLength);
}
