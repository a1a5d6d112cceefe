// SPDX-License-Identifier: Apache-2.0

import type { IntervalSet } from "./interval-set.ts";
import { type Interval, sizeOf } from "./ip-range.ts";

/** In spaces up to this size candidates start anywhere, so that allocators do not all collide behind a run of taken addresses. */
const WHOLE = 4_294_967_296n;
/** In larger spaces they start among this many first addresses: IPv6 texts stay short, and two allocators rarely meet. */
const SPREAD = 65_536n;

/**
 * Every number of the space that is not taken, once, lazily: from the offset `start` (0 <= start < the size of all
 * intervals together) to the end, then from the beginning. O(log n) a step; `taken` may change between steps.
 * The intervals must not overlap.
 */
export function* pickFree(
  space: readonly Interval[],
  taken: IntervalSet,
  start: bigint,
): Generator<bigint, void, undefined> {
  const place = locate(space, start);
  if (place === undefined) return;
  const { index, interval, n } = place;
  yield* freeIn({ first: n, last: interval.last }, taken);
  for (const later of space.slice(index + 1)) yield* freeIn(later, taken);
  for (const earlier of space.slice(0, index)) yield* freeIn(earlier, taken);
  yield* freeIn({ first: interval.first, last: n - 1n }, taken);
}

/** The number at that offset of all intervals together; undefined for one that they do not have. */
export function numberAt(space: readonly Interval[], offset: bigint): bigint | undefined {
  return locate(space, offset)?.n;
}

function locate(
  space: readonly Interval[],
  start: bigint,
): { index: number; interval: Interval; n: bigint } | undefined {
  let rest = start;
  for (const [index, interval] of space.entries()) {
    const size = sizeOf(interval);
    if (rest < size) return { index, interval, n: interval.first + rest };
    rest -= size;
  }
  return undefined;
}

function* freeIn({ first, last }: Interval, taken: IntervalSet): Generator<bigint, void, undefined> {
  let free = taken.nextFree(first, last);
  while (free !== undefined) {
    yield free;
    free = taken.nextFree(free + 1n, last);
  }
}

/**
 * Where to begin for this identity: the same offset as long as the space is the same, so that it tends to get its
 * old address back, and another one than its neighbours. Zero for an empty space.
 */
export function startOffset(seed: string, space: readonly Interval[]): bigint {
  const size = space.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  if (size === 0n) return 0n;
  return BigInt(hash(seed)) % (size > WHOLE ? SPREAD : size);
}

/** FNV-1a, 32 bits, over UTF-16 units; then MurmurHash3's finaliser, because names differ in their last digit. */
function hash(seed: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < seed.length; i++) h = Math.imul(h ^ seed.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** At most `count` free numbers around `near` but not `near` itself, the nearest first, the lower one of a pair first. */
export function freeNeighbours(
  space: readonly Interval[],
  taken: IntervalSet,
  near: bigint,
  count: number,
): bigint[] {
  const below = freeBelow(space, taken, near - 1n);
  const above = freeAbove(space, taken, near + 1n);
  const found: bigint[] = [];
  let [low, high] = [below.next(), above.next()];
  while (found.length < count && !(low.done && high.done)) {
    if (!low.done && (high.done || near - low.value <= high.value - near)) {
      found.push(low.value);
      low = below.next();
    } else if (!high.done) {
      found.push(high.value);
      high = above.next();
    }
  }
  return found;
}

function* freeAbove(
  space: readonly Interval[],
  taken: IntervalSet,
  from: bigint,
): Generator<bigint, void, undefined> {
  for (const { first, last } of space.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    if (last >= from) yield* freeIn({ first: first > from ? first : from, last }, taken);
  }
}

function* freeBelow(
  space: readonly Interval[],
  taken: IntervalSet,
  from: bigint,
): Generator<bigint, void, undefined> {
  for (const { first, last } of space.toSorted((a, b) => (a.first > b.first ? -1 : 1))) {
    if (first > from) continue;
    let free = taken.previousFree(last < from ? last : from, first);
    while (free !== undefined) {
      yield free;
      free = taken.previousFree(free - 1n, first);
    }
  }
}
