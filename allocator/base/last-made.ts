// SPDX-License-Identifier: Apache-2.0

/**
 * What was made last of a few texts or objects that are read over and over. Of one that has not changed the same is given again, by
 * which others may know what they have made of that.
 */
export class LastMade<T> {
  readonly #most: number;
  readonly #made = new Map<string, { readonly version: string; readonly made: T }>(); // what it is of -> what was made

  constructor(most: number) {
    this.#most = most;
  }

  /** `version`: of whatever `make` reads; another one has another. */
  of(key: string, version: string, make: () => T): T {
    const known = this.#made.get(key);
    if (known?.version === version) return known.made;
    const made = make();
    this.#made.delete(key);
    this.#made.set(key, { version, made });
    const [oldest] = this.#made.keys();
    if (this.#made.size > this.#most && oldest !== undefined) this.#made.delete(oldest);
    return made;
  }
}
