// SPDX-License-Identifier: Apache-2.0
import type { Kind, Stored } from "../store/store.ts";

/** How records of a kind are packed. `P` has no field `record`. */
export interface Packing<K extends Kind, P extends object> {
  /** Undefined: it has something that cannot be packed, and stays as it is. */
  pack(stored: Stored<K>): P | undefined;
  /** Equal to what was packed. */
  unpack(key: string, packed: P): Stored<K>;
}

/**
 * Records by their key, packed: there may be 100,000 of a kind, and few of them are looked at. Each look makes the record
 * anew, so that two of one record are equal, and not the same object.
 */
export class KeptRecords<K extends Kind, P extends object> {
  readonly #packing: Packing<K, P>;
  readonly #kept = new Map<string, P | Stored<K>>(); // key -> packed, or the record as it came

  constructor(packing: Packing<K, P>) {
    this.#packing = packing;
  }

  get size(): number {
    return this.#kept.size;
  }

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  get(key: string): Stored<K> | undefined {
    const kept = this.#kept.get(key);
    return kept === undefined ? undefined : this.#whole(key, kept);
  }

  set(stored: Stored<K>): void {
    this.#kept.set(stored.key, this.#packing.pack(stored) ?? stored);
  }

  delete(key: string): void {
    this.#kept.delete(key);
  }

  keys(): Iterable<string> {
    return this.#kept.keys();
  }

  /**
   * Each as it is when its turn comes, as many as there are at the beginning: whoever takes his time between two ends, however many
   * come meanwhile. `mayBe` passes over those of which it says so without making them: most of many.
   */
  *values(mayBe?: (packed: P) => boolean): Generator<Stored<K>, void, void> {
    let left = this.#kept.size;
    for (const [key, kept] of this.#kept) {
      if (left-- === 0) return;
      if (mayBe !== undefined && !("record" in kept) && !mayBe(kept)) continue;
      yield this.#whole(key, kept);
    }
  }

  #whole(key: string, kept: P | Stored<K>): Stored<K> {
    return "record" in kept ? kept : this.#packing.unpack(key, kept);
  }
}
