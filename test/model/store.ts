// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
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
import type { Books } from "./books.ts";

/** The port over books in memory, for the contract suite and for repairs that need no schedule. */
export class BookStore implements Store {
  readonly #books: Books;
  readonly #clock: Pick<Clock, "now">;

  constructor(auditInput: Books, clock: Pick<Clock, "now">) {
    this.#books = auditInput;
    this.#clock = clock;
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    return this.#books.create(kind, record, this.#clock.now());
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return this.#books.get(kind, key);
  }

  async replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#books.replace(kind, seen, next);
  }

  async report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#books.report(seen, status);
  }

  async reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return this.#books.reportBlock(seen, status);
  }

  async remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#books.remove(kind, seen);
  }

  async *list<K extends Kind>(kind: K): AsyncGenerator<Stored<K>, void, void> {
    for (const stored of this.#books.list(kind)) yield stored;
  }

  async *watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const news: Change<K>[] = [{ type: "relist" }];
    let wake = () => {};
    const before = this.#books.list(kind);
    const stop = this.#books.listen((written) => {
      if (written.kind !== kind) return;
      const stored = written.after as Stored<K> | undefined;
      news.push(stored === undefined ? { type: "gone", key: written.key } : { type: "put", stored });
      wake();
    });
    news.push(...before.map((stored): Change<K> => ({ type: "put", stored })), { type: "synced" });
    const onAbort = () => wake();
    signal.addEventListener("abort", onAbort);
    try {
      while (!signal.aborted) {
        const next = news.shift();
        if (next !== undefined) yield next;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      stop();
      signal.removeEventListener("abort", onAbort);
    }
  }

  async close(): Promise<void> {}
}
