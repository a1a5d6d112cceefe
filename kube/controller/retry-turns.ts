// SPDX-License-Identifier: Apache-2.0

/** Retries of all keys together, as client-go: what fails for thousands of keys must not become a flood. */
const RETRIES_PER_SECOND = 10;
const RETRY_BURST = 100;
const GAP_MS = 1000 / RETRIES_PER_SECOND;

/**
 * Keys whose retry is due. They are retried at a limited rate, and namespaces take turns: where thousands of keys of one namespace
 * fail, they wait for each other, and no key of another namespace waits for them.
 */
export class RetryTurns {
  /** Namespaces in the order of their turns; the keys of each in the order in which they came. */
  readonly #namespaces = new Map<string, Set<string>>();
  /** The slot that the last retry took, on the monotonic clock. Slots are GAP_MS apart; RETRY_BURST of the past ones can still be taken. */
  #lastSlot = Number.NEGATIVE_INFINITY;
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
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#lastSlot + GAP_MS;
  }

  /** Takes out the key whose turn it is; undefined: none waits, or the rate allows none now. */
  take(now: number): string | undefined {
    const slot = Math.max(this.#lastSlot, now - RETRY_BURST * GAP_MS) + GAP_MS;
    const [first] = this.#namespaces;
    if (first === undefined || slot > now) return undefined;
    const [namespace, keys] = first;
    const [key = ""] = keys;
    this.#lastSlot = slot;
    this.leave(key);
    if (this.#namespaces.delete(namespace)) this.#namespaces.set(namespace, keys);
    return key;
  }
}

/** Keys are `namespace/name`; what some have in front of that counts as part of the namespace. */
function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf("/")));
}
