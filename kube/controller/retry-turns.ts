// SPDX-License-Identifier: Apache-2.0

/** Retries of all keys together, as client-go: what fails for thousands of keys must not become a flood. */
const RETRIES_PER_SECOND = 10;
const RETRY_BURST = 100;
const GAP_MS = 1000 / RETRIES_PER_SECOND;

/**
 * Keys whose retry is due, of which there are so many a second. Namespaces take turns: what fails for thousands of keys of one waits for
 * its like, and not others for it.
 */
export class RetryTurns {
  /** Namespaces whose turn comes first are first, and of each the keys that wait longest. */
  readonly #namespaces = new Map<string, Set<string>>();
  /** Monotonic time at which the next retry is free, the burst aside. */
  #freeAt = Number.NEGATIVE_INFINITY;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  *keys(): Iterable<string> {
    for (const keys of this.#namespaces.values()) yield* keys;
  }

  enter(key: string): void {
    const namespace = namespaceOf(key);
    const keys = this.#namespaces.get(namespace) ?? new Set();
    this.#namespaces.set(namespace, keys);
    if (keys.has(key)) return;
    keys.add(key);
    this.#size++;
  }

  /** It need not wait any more. */
  leave(key: string): void {
    const namespace = namespaceOf(key);
    const keys = this.#namespaces.get(namespace);
    if (keys?.delete(key) !== true) return;
    this.#size--;
    if (keys.size === 0) this.#namespaces.delete(namespace);
  }

  /** Monotonic: when one of them has its turn; infinite without any. */
  soonest(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#freeAt + GAP_MS;
  }

  /** Takes out the key whose turn it is by then. */
  take(now: number): string | undefined {
    const freeAt = Math.max(this.#freeAt, now - RETRY_BURST * GAP_MS) + GAP_MS;
    const [first] = this.#namespaces;
    if (first === undefined || freeAt > now) return undefined;
    const [namespace, keys] = first;
    const [key = ""] = keys;
    this.#freeAt = freeAt;
    this.leave(key);
    if (this.#namespaces.delete(namespace)) this.#namespaces.set(namespace, keys);
    return key;
  }
}

/** With what stands before it: keys are `namespace/name`, or end so. */
function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf("/")));
}
