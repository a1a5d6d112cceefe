// SPDX-License-Identifier: Apache-2.0

import type { Cidr } from "../ip/address.ts";
import { intersection } from "../ip/ip-range.ts";
import { type BlockSpace, cutSpace } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";

/** A CIDR of a node that is so much larger than those of the pool is a mistake. */
const MOST_TAKEN_OVER = 256n;

/** Whether it has addresses of the pool, and more pieces of that size than a node has. */
export function isTooLarge(space: BlockSpace, cidr: Cidr): boolean {
  const { first, last } = space.numbersIn(cidr);
  return last - first >= MOST_TAKEN_OVER && hasSomeOf(space, cidr);
}

function hasSomeOf(space: BlockSpace, cidr: Cidr): boolean {
  const numbers = space.numbersIn(cidr);
  return (
    cidr.family === space.family && space.numbers.some((own) => intersection(own, numbers) !== undefined)
  );
}

/**
 * The pieces of the pool that a CIDR of a node lies in, or is made of: their records are what keeps anybody else from getting an address of it.
 * Undefined: it has more of them than a node has.
 */
export function piecesOf(pool: Pool, cidr: Cidr): readonly Cidr[] | undefined {
  const space = cutSpace(pool, cidr.family);
  if (space === undefined || !hasSomeOf(space, cidr)) return [];
  if (isTooLarge(space, cidr)) return undefined;
  const { first, last } = space.numbersIn(cidr);
  return Array.from({ length: Number(last - first) + 1 }, (_, i) => space.blockAt(first + BigInt(i))).filter(
    (piece) => space.has(piece),
  );
}
