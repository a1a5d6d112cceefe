// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change, CreateResult, Kind, Records, ReplaceResult, Store, Stored } from "../store.ts";

/** An empty store to test, and how to get rid of it and of every handle on it. */
export interface Subject {
  readonly store: Store;
  /** Another handle on the same data, as another process would have it; absent when the engine has none. */
  readonly second?: () => Promise<Store>;
  /** How many records are several pages of it; absent: more than any engine puts into a page. */
  readonly many?: number;
  dispose(): Promise<void>;
}

/** More than any engine puts into one page, so that the pages have to fit together. */
export const MANY = 2_200;

export type Open = () => Promise<Subject>;

/** How long a store may take to show what was written. Only a broken one takes that long. */
const MAX_WAIT_MS = 20_000;

/** A case with an empty store of its own. */
export function caseOf(open: Open, title: string, work: (subject: Subject) => Promise<void>): void {
  void it(title, async () => {
    const subject = await open();
    try {
      await work(subject);
    } finally {
      await subject.dispose();
    }
  });
}

/** Creates a record that must not be there yet. */
export async function created<K extends Kind>(store: Store, kind: K, record: Records[K]): Promise<Stored<K>> {
  return expectCreated(await store.create(kind, record));
}

export function expectCreated<K extends Kind>(result: CreateResult<K>): Stored<K> {
  assert.equal(result.kind, "created");
  return result.stored;
}

export function expectReplaced<K extends Kind>(result: ReplaceResult<K>): Stored<K> {
  assert.ok(result.kind === "replaced", "conflict");
  return result.stored;
}

export async function listed<K extends Kind>(store: Store, kind: K): Promise<Stored<K>[]> {
  return collect(store.list(kind));
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Waits until it holds, with the words for when it does not. */
export async function eventually(words: string, holds: () => boolean): Promise<void> {
  for (const deadline = Date.now() + MAX_WAIT_MS; !holds(); await sleep(2)) {
    assert.ok(Date.now() < deadline, `never came: ${words}`);
  }
}

/** A running watch, with what it said and what it adds up to. */
export interface Watching<K extends Kind> {
  readonly said: readonly Change<K>[];
  readonly state: ReadonlyMap<string, Stored<K>>; // key -> record
  readonly synced: boolean;
  /** Aborts, and waits until the iteration has ended. */
  stop(): Promise<void>;
}

class Watcher<K extends Kind> implements Watching<K> {
  readonly said: Change<K>[] = [];
  readonly state = new Map<string, Stored<K>>(); // key -> record
  readonly #stale = new Set<string>(); // keys not seen again in the running pass
  readonly #abort = new AbortController();
  readonly #ended: Promise<void>;
  synced = false;

  constructor(store: Store, kind: K) {
    this.#ended = this.#run(store, kind);
    this.#ended.catch(() => undefined); // stop() tells
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#ended;
  }

  async #run(store: Store, kind: K): Promise<void> {
    for await (const change of store.watch(kind, this.#abort.signal)) {
      this.said.push(change);
      this.#apply(change);
    }
  }

  #apply(change: Change<K>): void {
    if (change.type === "relist") {
      for (const key of this.state.keys()) this.#stale.add(key);
    } else if (change.type === "synced") {
      for (const key of this.#stale) this.state.delete(key);
      this.#stale.clear();
      this.synced = true;
    } else if (change.type === "put") {
      this.#stale.delete(change.stored.key);
      this.state.set(change.stored.key, change.stored);
    } else {
      this.state.delete(change.key);
    }
  }
}

export function startWatch<K extends Kind>(store: Store, kind: K): Watching<K> {
  return new Watcher(store, kind);
}

/** Waits for the end of the first full pass. */
export async function syncedWatch<K extends Kind>(store: Store, kind: K): Promise<Watching<K>> {
  const watching = startWatch(store, kind);
  await eventually(`synced of ${kind}`, () => watching.synced);
  return watching;
}

/** Waits until a watch adds up to exactly these records. */
export async function converges<K extends Kind>(
  watching: Watching<K>,
  records: readonly Stored<K>[],
): Promise<void> {
  const revisions = new Map(records.map((stored) => [stored.key, stored.revision])); // key -> revision
  const same = () =>
    watching.synced &&
    watching.state.size === revisions.size &&
    [...watching.state].every(([key, stored]) => revisions.get(key) === stored.revision);
  await eventually("the state of the store in a watch", same);
  const byKey = (a: Stored<K>, b: Stored<K>) => (a.key < b.key ? -1 : 1);
  assert.deepEqual([...watching.state.values()].sort(byKey), [...records].sort(byKey));
}
