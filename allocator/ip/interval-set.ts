// SPDX-License-Identifier: Apache-2.0
import type { Interval } from "./ip-range.ts";

/** Ascending runs as two columns, so that a run of one number costs one bigint and no object. */
interface Chunk {
  readonly firsts: bigint[];
  readonly lasts: bigint[];
}

/** An insertion moves at most two columns of 512 pointers, and a million runs make a few thousand chunks. */
const MOST = 512;

/**
 * A set of whole numbers kept as disjoint runs, none adjacent to another. Every verb on one number costs two binary
 * searches and one small move, whether a /12 or a /64 is behind it and whether it is empty or full.
 */
export class IntervalSet implements Iterable<Interval> {
  readonly #chunks: Chunk[] = []; // none empty
  #size = 0n;

  /** How many numbers are in the set. */
  get size(): bigint {
    return this.#size;
  }

  has(n: bigint): boolean {
    return this.#runWith(n) !== undefined;
  }

  /** Whether n is new to the set. */
  add(n: bigint): boolean {
    const before = this.#size;
    this.#cover(n, n);
    return this.#size !== before;
  }

  addInterval(interval: Interval): void {
    this.#cover(interval.first, interval.last);
  }

  /** Whether n was in the set. */
  remove(n: bigint): boolean {
    const c = this.#chunkOf(n);
    const chunk = this.#chunks[c];
    const i = chunk === undefined ? -1 : countUpTo(chunk.firsts, n) - 1;
    if (chunk === undefined || i < 0 || at(chunk.lasts, i) < n) return false;
    this.#size -= 1n;
    const [first, last] = [at(chunk.firsts, i), at(chunk.lasts, i)];
    if (first === last) {
      chunk.firsts.splice(i, 1);
      chunk.lasts.splice(i, 1);
      if (chunk.firsts.length === 0) this.#chunks.splice(c, 1);
    } else if (n === first) {
      chunk.firsts[i] = n + 1n;
    } else if (n === last) {
      chunk.lasts[i] = n - 1n;
    } else {
      chunk.firsts.splice(i + 1, 0, n + 1n);
      chunk.lasts.splice(i, 0, n - 1n);
      this.#split(c);
    }
    return true;
  }

  /** The smallest number >= from and <= last that is not in the set. */
  nextFree(from: bigint, last: bigint): bigint | undefined {
    const run = this.#runWith(from);
    const free = run === undefined ? from : run.last + 1n;
    return free <= last ? free : undefined;
  }

  /** The smallest number >= from and <= last that is in the set. */
  nextTaken(from: bigint, last: bigint): bigint | undefined {
    if (from > last) return undefined;
    if (this.has(from)) return from;
    let c = this.#chunkOf(from);
    let chunk = this.#chunks[c];
    let i = chunk === undefined ? 0 : countUpTo(chunk.firsts, from);
    if (chunk !== undefined && i === chunk.firsts.length) [chunk, i] = [this.#chunks[++c], 0];
    const next = chunk?.firsts[i];
    return next !== undefined && next <= last ? next : undefined;
  }

  /** The greatest number <= from and >= first that is not in the set. */
  previousFree(from: bigint, first: bigint): bigint | undefined {
    const run = this.#runWith(from);
    const free = run === undefined ? from : run.first - 1n;
    return free >= first ? free : undefined;
  }

  /** The runs in ascending order. The set must not change meanwhile. */
  *[Symbol.iterator](): Generator<Interval, void, undefined> {
    for (const { firsts, lasts } of this.#chunks) {
      for (let i = 0; i < firsts.length; i++) yield { first: at(firsts, i), last: at(lasts, i) };
    }
  }

  #runWith(n: bigint): Interval | undefined {
    const chunk = this.#chunks[this.#chunkOf(n)];
    if (chunk === undefined) return undefined;
    const i = countUpTo(chunk.firsts, n) - 1;
    if (i < 0 || at(chunk.lasts, i) < n) return undefined;
    return { first: at(chunk.firsts, i), last: at(chunk.lasts, i) };
  }

  /** The last chunk that begins at or below n; the first one when all begin above it. */
  #chunkOf(n: bigint): number {
    let low = 0;
    let high = this.#chunks.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (at((this.#chunks[middle] as Chunk).firsts, 0) <= n) low = middle;
      else high = middle;
    }
    return low;
  }

  #cover(first: bigint, last: bigint): void {
    const c = this.#chunkOf(first);
    const chunk = this.#chunks[c];
    if (chunk === undefined) {
      this.#chunks.push({ firsts: [first], lasts: [last] });
      this.#size = last - first + 1n;
      return;
    }
    let start = countUpTo(chunk.firsts, first) - 1;
    if (start < 0 || at(chunk.lasts, start) + 1n < first) start++;
    let end = start; // the runs [start, end) touch the new one and become part of it
    let [low, high] = [first, last];
    for (; end < chunk.firsts.length && at(chunk.firsts, end) <= high + 1n; end++) {
      if (at(chunk.firsts, end) < low) low = at(chunk.firsts, end);
      if (at(chunk.lasts, end) > high) high = at(chunk.lasts, end);
      this.#size -= lengthAt(chunk, end);
    }
    if (end === chunk.firsts.length) high = this.#absorbAfter(c, high);
    put(chunk, { start, end, low, high });
    this.#size += high - low + 1n;
    this.#split(c);
  }

  /** Takes the runs that begin up to high + 1 out of the chunks behind c; answers where the widened run ends. */
  #absorbAfter(c: number, high: bigint): bigint {
    let next = c + 1;
    let end = high;
    for (let chunk = this.#chunks[next]; chunk !== undefined; chunk = this.#chunks[++next]) {
      const count = countUpTo(chunk.firsts, high + 1n);
      if (count === 0) break;
      for (let i = 0; i < count; i++) this.#size -= lengthAt(chunk, i);
      if (at(chunk.lasts, count - 1) > end) end = at(chunk.lasts, count - 1);
      if (count < chunk.firsts.length) {
        chunk.firsts.splice(0, count);
        chunk.lasts.splice(0, count);
        break;
      }
    }
    if (next > c + 1) this.#chunks.splice(c + 1, next - c - 1);
    return end;
  }

  #split(c: number): void {
    const chunk = this.#chunks[c];
    if (chunk === undefined || chunk.firsts.length <= MOST) return;
    const half = MOST / 2;
    this.#chunks.splice(c + 1, 0, { firsts: chunk.firsts.splice(half), lasts: chunk.lasts.splice(half) });
  }
}

/** The element at an index that is known to be inside. */
function at(column: readonly bigint[], i: number): bigint {
  return column[i] as bigint;
}

function lengthAt(chunk: Chunk, i: number): bigint {
  return at(chunk.lasts, i) - at(chunk.firsts, i) + 1n;
}

/** How many of the ascending numbers are <= n. */
function countUpTo(ascending: readonly bigint[], n: bigint): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(ascending, middle) <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Puts the run [low, high] in the place of the runs [start, end). */
function put(chunk: Chunk, run: { start: number; end: number; low: bigint; high: bigint }): void {
  const { start, end, low, high } = run;
  if (end - start === 1) {
    chunk.firsts[start] = low;
    chunk.lasts[start] = high;
    return;
  }
  chunk.firsts.splice(start, end - start, low);
  chunk.lasts.splice(start, end - start, high);
}
