// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import type { BlockStatus } from "../../allocator/model/block.ts";
import type { ClaimStatus } from "../../allocator/model/claim.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../../allocator/store/store.ts";

/** What a write that fails has done: nothing, or everything but answer. */
export type Failure = "before" | "after";

/** A store whose process dies at its n-th write: that write and every call after it fail. Counts from 1; 0: never. */
export class FailingStore implements Store {
  readonly #inner: Store;
  readonly #at: number;
  readonly #failure: Failure;
  /** Reads and writes that were let through. */
  writes = 0;
  reads = 0;
  /** Writes that were begun: several may be under way. */
  #begun = 0;
  #dead = false;

  constructor(inner: Store, at: number, failure: Failure = "before") {
    this.#inner = inner;
    this.#at = at;
    this.#failure = failure;
  }

  get died(): boolean {
    return this.#dead;
  }

  create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    return this.#write(() => this.#inner.create(kind, record));
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    this.#mustLive();
    this.reads++;
    return await this.#inner.get(kind, key);
  }

  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#write(() => this.#inner.replace(kind, seen, next));
  }

  report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#write(() => this.#inner.report(seen, status));
  }

  reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return this.#write(() => this.#inner.reportBlock(seen, status));
  }

  remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#write(() => this.#inner.remove(kind, seen));
  }

  list<K extends Kind>(kind: K): AsyncIterable<Stored<K>> {
    this.#mustLive();
    return this.#inner.list(kind);
  }

  watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncIterable<Change<K>> {
    this.#mustLive();
    return this.#inner.watch(kind, signal);
  }

  async close(): Promise<void> {}

  async #write<T>(work: () => Promise<T>): Promise<T> {
    this.#mustLive();
    const dies = ++this.#begun === this.#at;
    if (dies && this.#failure === "before") this.#die();
    const result = await work();
    this.writes++;
    if (dies) this.#die();
    return result;
  }

  #die(): never {
    this.#dead = true;
    throw killed();
  }

  #mustLive(): void {
    if (this.#dead) throw killed();
  }
}

function killed(): BerthError {
  return new BerthError("STORE_UNAVAILABLE", "the process was killed here");
}
