// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Refusal } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import type { Pool } from "../../allocator/pool/pool.ts";

/** An API server stores what was admitted at once or not at all: after this long it is not waited for. */
const WRITTEN_MS = 2_000;
const LOOK_MS = 50;

/**
 * Pools that this process let pass a moment ago: an API server writes them after the review, so that the next review may not see
 * them. Whoever is reviewed against one of them waits until it is stored. What another replica lets pass at the same moment
 * stays unseen: then both stand, and no address is given twice all the same (ADR 0038).
 */
export class PoolsUnderWay {
  readonly #clock: Clock;
  #passed: readonly { readonly pool: Pool; readonly until: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  passed(pool: Pool): void {
    this.#passed = [...this.#passed, { pool, until: this.#clock.monotonic() + WRITTEN_MS }];
  }

  /** The stored pools, once each pool that was let pass a moment ago and collides with this one is among them. */
  async stored(
    pool: Pool,
    read: () => Promise<readonly Pool[]>,
    collides: (others: readonly Pool[], pool: Pool) => Refusal | undefined,
  ): Promise<readonly Pool[]> {
    for (;;) {
      const pools = await read();
      this.#forget(pools);
      const waited = this.#passed.map((one) => one.pool).filter(({ name }) => name !== pool.name);
      if (collides(waited, pool) === undefined) return pools;
      await this.#clock.sleep(LOOK_MS);
    }
  }

  #forget(pools: readonly Pool[]): void {
    const now = this.#clock.monotonic();
    const isStored = ({ name, spec }: Pool) =>
      pools.some((one) => one.name === name && isDeepStrictEqual(one.spec, spec));
    this.#passed = this.#passed.filter(({ pool, until }) => now < until && !isStored(pool));
  }
}
