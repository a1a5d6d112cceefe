// SPDX-License-Identifier: Apache-2.0

import { isStoreFault, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/ports.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import type { Pool } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import { type BlockRequest, GRANTS_AT_ONCE, grantBlocks } from "./grant.ts";
import type { PoolFaults } from "./pool-faults.ts";

interface Lots {
  readonly pool: Pool;
  readonly requests: readonly BlockRequest[];
  /** As in `grantBlocks`. */
  readonly known: IntervalSet;
  /** Of what is logged where some cannot be granted. */
  readonly words: string;
  readonly mayWrite: () => boolean;
}

type LotsContext = Parameters<typeof grantBlocks>[0] & {
  readonly log: Logger;
  /** Of the passes that it is called in. */
  readonly faults: PoolFaults;
};

/**
 * Grants blocks to those whose turn it is, lot by lot, and gives each lot's as soon as they are granted. What is wrong with one node's says
 * nothing of the others', and is told to the pool's faults; where nothing of a lot goes well the others are not tried.
 */
export async function* grantInLots(
  context: LotsContext,
  { pool, requests, known, words, mayWrite }: Lots,
): AsyncGenerator<readonly Stored<"block">[], void, void> {
  const { log, faults } = context;
  const due = faults.due(pool, requests);
  for (let n = 0; n < due.length && mayWrite(); n += GRANTS_AT_ONCE) {
    const some = due.slice(n, n + GRANTS_AT_ONCE);
    const lot = await grantBlocks(context, pool, some, known).catch((fault: unknown) => {
      if (isStoreFault(fault)) throw fault;
      return { granted: [], fault, refused: [], untried: some };
    });
    faults.served(
      pool,
      lot.granted.map(({ record }) => record),
    );
    yield lot.granted;
    if (lot.fault === undefined) continue;
    const why = messageOf(lot.fault);
    log.error(words, { pool: pool.name, error: why });
    const isOver = lot.granted.length === 0;
    const left = isOver ? due.slice(n + GRANTS_AT_ONCE) : [];
    faults.met(pool, why, { refused: lot.refused, untried: [...lot.untried, ...left] });
    if (isOver) return;
  }
}
