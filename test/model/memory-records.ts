// SPDX-License-Identifier: Apache-2.0
import type { BlockStatus } from "../../allocator/model/block.ts";
import type { ClaimStatus } from "../../allocator/model/claim.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import type {
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Stored,
} from "../../allocator/store/store.ts";
import { asCreated, withStatusOf } from "../../allocator/store/writes.ts";

/** One write that happened: `after` is undefined for a removal, `before` for a creation. */
export interface Written {
  readonly kind: Kind;
  readonly key: string;
  readonly before: Stored<Kind> | undefined;
  readonly after: Stored<Kind> | undefined;
}

/** What a record is called among records of all kinds: kind/key. */
export function slotOf(kind: Kind, key: string): string {
  return `${kind}/${key}`;
}

/**
 * Records in memory under the rules of the Store port, each verb at once. A revision is the how-manieth write of its
 * key it was: interleavings that write the same keys in the same order end with the same revisions.
 */
export class MemoryRecords {
  readonly #rows: Map<string, Stored<Kind>>; // kind/key -> record
  readonly #writes: Map<string, number>; // kind/key -> writes so far, of all incarnations
  readonly #lists = new Map<Kind, readonly Stored<Kind>[]>(); // kind -> as it was listed, until the next write
  readonly #listeners = new Set<(written: Written) => void>();

  constructor(like?: MemoryRecords) {
    this.#rows = new Map(like === undefined ? [] : like.#rows);
    this.#writes = new Map(like === undefined ? [] : like.#writes);
  }

  /** Hears of every write, in order, until the returned function is called. */
  listen(listener: (written: Written) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  create<K extends Kind>(kind: K, record: Records[K], now: number): CreateResult<K> {
    const key = keyOf(kind, record);
    const there = this.get(kind, key);
    if (there !== undefined) return { kind: "exists", stored: there };
    const uid = `${slotOf(kind, key)}#${this.#writes.get(slotOf(kind, key)) ?? 0}`;
    return {
      kind: "created",
      stored: this.#put(kind, { key, record: asCreated(kind, record), uid, createdAt: Math.floor(now) }),
    };
  }

  get<K extends Kind>(kind: K, key: string): Stored<K> | undefined {
    return this.#rows.get(slotOf(kind, key)) as Stored<K> | undefined;
  }

  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): ReplaceResult<K> {
    const there = this.#seen(kind, seen);
    if (there === undefined) return { kind: "conflict" };
    const record = withStatusOf<K>(there.record, next);
    return { kind: "replaced", stored: this.#put(kind, { ...there, record }) };
  }

  report(seen: Stored<"claim">, status: ClaimStatus): ReplaceResult<"claim"> {
    const there = this.#seen("claim", seen);
    if (there === undefined) return { kind: "conflict" };
    return {
      kind: "replaced",
      stored: this.#put("claim", { ...there, record: { ...there.record, status } }),
    };
  }

  reportBlock(seen: Stored<"block">, status: BlockStatus): ReplaceResult<"block"> {
    const there = this.#seen("block", seen);
    if (there === undefined) return { kind: "conflict" };
    return {
      kind: "replaced",
      stored: this.#put("block", { ...there, record: { ...there.record, status } }),
    };
  }

  remove<K extends Kind>(kind: K, seen: Stored<K>): RemoveResult {
    const there = this.#seen(kind, seen);
    if (there === undefined) return { kind: "conflict" };
    this.#rows.delete(slotOf(kind, there.key));
    this.#lists.delete(kind);
    this.#tell({ kind, key: there.key, before: there, after: undefined });
    return { kind: "removed" };
  }

  /** In the order of keys. */
  list<K extends Kind>(kind: K): Stored<K>[] {
    const known = this.#lists.get(kind);
    if (known !== undefined) return [...known] as Stored<K>[];
    const prefix = slotOf(kind, "");
    const list: Stored<Kind>[] = [];
    for (const [slot, stored] of this.#rows) if (slot.startsWith(prefix)) list.push(stored);
    list.sort((a, b) => (a.key < b.key ? -1 : 1));
    this.#lists.set(kind, list);
    return [...list] as Stored<K>[];
  }

  /** Every record by its slot, in no order. */
  rows(): ReadonlyMap<string, Stored<Kind>> {
    return this.#rows;
  }

  #seen<K extends Kind>(kind: K, seen: Stored<K>): Stored<K> | undefined {
    const there = this.get(kind, seen.key);
    return there?.uid === seen.uid && there.revision === seen.revision ? there : undefined;
  }

  #put<K extends Kind>(kind: K, to: Omit<Stored<K>, "revision">): Stored<K> {
    const slot = slotOf(kind, to.key);
    const write = (this.#writes.get(slot) ?? 0) + 1;
    const stored: Stored<K> = { ...to, record: freeze(to.record), revision: String(write) };
    const before = this.#rows.get(slot);
    this.#writes.set(slot, write);
    this.#rows.set(slot, stored);
    this.#lists.delete(kind);
    this.#tell({ kind, key: to.key, before, after: stored });
    return stored;
  }

  #tell(written: Written): void {
    for (const listener of this.#listeners) listener(written);
  }
}

/** All the way down: records are shared between the store and everybody who has read them. */
function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) freeze(part);
  }
  return value;
}
