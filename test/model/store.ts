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
import type { MemoryRecords } from "./memory-records.ts";

/** The port over records in memory, for the contract suite and for repairs that need no schedule. */
export class BookStore implements Store {
  readonly #records: MemoryRecords;
  readonly #clock: Pick<Clock, "now">;

  constructor(auditInput: MemoryRecords, clock: Pick<Clock, "now">) {
    this.#records = auditInput;
    this.#clock = clock;
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    return this.#records.create(kind, record, this.#clock.now());
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return this.#records.get(kind, key);
  }

  async replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#records.replace(kind, seen, next);
  }

  async report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#records.report(seen, status);
  }

  async reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return this.#records.reportBlock(seen, status);
  }

  async remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#records.remove(kind, seen);
  }

  async *list<K extends Kind>(kind: K): AsyncGenerator<Stored<K>, void, void> {
    for (const stored of this.#records.list(kind)) yield stored;
  }

  async *watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const news: Change<K>[] = [{ type: "relist" }];
    let wake = () => {};
    const before = this.#records.list(kind);
    const stop = this.#records.listen((written) => {
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
