// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { Backoff } from "../../allocator/base/backoff.ts";
import type { Clock, Random } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Outcome } from "../../kube/controller/workqueue.ts";

/** An address that is free again is known from the watch: time alone helps seldom. */
const RETRY = { base: 2_000, longest: 60_000 };
/** However many addresses are freed, those who wait for one look again so often at most. */
const RESYNC_MS = 3_000;

interface Deps {
  readonly clock: Pick<Clock, "monotonic">;
  readonly random: Pick<Random, "fraction">;
  /** Has the key looked at after so long. */
  readonly later: (key: string, afterMs: number) => void;
}

/** Who was refused an address: tried again with back-off, and soon when something was freed. */
export class Waiting {
  readonly #deps: Deps;
  readonly #backoffs = new Map<string, Backoff>(); // key that may have to wait -> how long it waits next
  /** Monotonic: when those who wait look again, or did last. */
  #resyncAt = Number.NEGATIVE_INFINITY;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Before the attempt: what is freed in the middle of it counts. */
  enter(key: string): void {
    const { random } = this.#deps;
    if (!this.#backoffs.has(key)) this.#backoffs.set(key, new Backoff(RETRY, random));
  }

  /** After the attempt, instead of `refused`: it looks again when something is freed, and not because time has passed. */
  park(key: string): void {
    this.enter(key);
    // the others' next look is planned already, and what is freed until then plans no other
    const resync = this.#resyncAt - this.#deps.clock.monotonic();
    if (resync > 0) this.#deps.later(key, resync);
  }

  /** It has what it wants, or wants nothing any more. */
  leave(key: string): void {
    this.#backoffs.delete(key);
  }

  /** It was refused. */
  refused(key: string): Outcome {
    this.enter(key);
    const backoff = this.#backoffs.get(key)?.next() ?? RETRY.longest;
    const resync = this.#resyncAt - this.#deps.clock.monotonic();
    return { kind: "again", afterMs: resync > 0 ? Math.min(resync, backoff) : backoff };
  }

  /** Something was freed that somebody may be waiting for. */
  freed(): void {
    const now = this.#deps.clock.monotonic();
    if (this.#resyncAt > now || this.#backoffs.size === 0) return;
    this.#resyncAt = Math.max(now + 1, this.#resyncAt + RESYNC_MS);
    for (const key of this.#backoffs.keys()) this.#deps.later(key, this.#resyncAt - now);
  }
}

/** Calls back for what may help those that wait: an address is released or free, or a pool changes. Returns what removes the handlers. */
export function onAddressFreed(cache: RecordCache, waiting: Waiting): readonly (() => void)[] {
  return [
    cache.onChange("reservation", (_, now) => {
      if (now === undefined || now.record.releasedAt !== undefined) waiting.freed();
    }),
    onPoolChanged(cache, waiting),
  ];
}

export function onPoolChanged(cache: RecordCache, waiting: Waiting): () => void {
  return cache.onChange("pool", (_, now, before) => {
    if (!isDeepStrictEqual(now?.record, before?.record)) waiting.freed();
  });
}
