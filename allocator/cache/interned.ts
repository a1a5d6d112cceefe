// SPDX-License-Identifier: Apache-2.0

/** So many are remembered. Then it begins anew: those that are in use stay as they are. */
const REMEMBERED = 20_000;
/** What has more characters is hardly anybody else's too, and would stay in memory when its record is gone. */
const LONGEST = 500;

/** Equal parts of many records, each kept once. */
export class Interned<T extends object | string> {
  readonly #parts = new Map<string, T>(); // what it is in words -> the one that is kept of it

  /** The one that was given first with these words, which say all that is in it. */
  one(words: string, part: T): T {
    const kept = this.#parts.get(words);
    if (kept !== undefined) return kept;
    if (words.length > LONGEST) return part;
    if (this.#parts.size >= REMEMBERED) this.#parts.clear();
    this.#parts.set(words, part);
    return part;
  }
}
