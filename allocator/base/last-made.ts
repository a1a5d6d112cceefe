// SPDX-License-Identifier: Apache-2.0

/**
 * What was used last of what was made of a few texts or objects that are read over and over. Of one that has not changed the same is given again, by
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
    const now = known?.version === version ? known : { version, made: make() };
    this.#made.delete(key); // what was used last is last
    this.#made.set(key, now);
    const [first] = this.#made.keys();
    if (this.#made.size > this.#most && first !== undefined) this.#made.delete(first);
    return now.made;
  }
}
