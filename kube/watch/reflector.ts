// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "../../allocator/base/ports.ts";
import { itemKey, type KubeItem } from "../api/resource.ts";
import { type ItemChange, type ListWatchOptions, listAndWatch } from "./list-watch.ts";

/** What is kept has changed under a key; `now` undefined: gone, `before` undefined: new. Handlers only enqueue. */
type Handler<P> = (key: string, now: P | undefined, before: P | undefined) => void;

interface ReflectorOptions<P> extends ListWatchOptions {
  /**
   * What is kept of an object: the few fields that are asked for. Nobody hears of a change of any other, nor of one in private fields of a
   * class, which are not compared. Throws for an object that cannot be used.
   */
  readonly project: (item: KubeItem) => P;
  /** Name of an index -> the values under which an object is found in it. */
  readonly indexes?: Readonly<Record<string, (kept: P) => readonly string[]>>;
}

interface Entry<P> {
  revision: string;
  readonly kept: P;
}

/**
 * Objects of a resource in memory, kept up to date by a watch. Never dies: what a handler or the projection throws
 * is logged, and the object passed over. Handlers are told of differences in what is kept only: most changes of an object
 * are of its status, and of nothing that is read.
 */
export class Reflector<P> {
  readonly #options: ReflectorOptions<P>;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry<P>>(); // namespace/name -> what is kept
  readonly #indexes = new Map<string, Map<string, Set<string>>>(); // index -> value -> keys
  readonly #handlers = new Set<Handler<P>>();
  readonly #synced = Promise.withResolvers<void>();
  /** Keys that did not come again yet in the running full pass. */
  #stale: Set<string> | undefined;
  #isSynced = false;

  constructor(options: ReflectorOptions<P>) {
    this.#options = options;
    this.#log = options.log;
    for (const name of Object.keys(options.indexes ?? {})) this.#indexes.set(name, new Map());
  }

  /** Everything was listed once. Until then absence means nothing. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Resolves with the end of the first full pass; never, when the signal aborts before it. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): P | undefined {
    return this.#entries.get(key)?.kept;
  }

  *all(): Generator<readonly [key: string, kept: P], void, void> {
    for (const [key, { kept }] of this.#entries) yield [key, kept];
  }

  /** What an index has under a value, in no order. Throws for an index that was not asked for. */
  by(index: string, value: string): readonly P[] {
    const values = this.#indexes.get(index);
    if (values === undefined) throw new TypeError(`there is no index ${index}`);
    return [...(values.get(value) ?? [])].flatMap((key) => this.get(key) ?? []);
  }

  /** Calls the handler at every change from here on, after the change; gives what takes it away again. */
  onChange(handler: Handler<P>): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** Follows the resource until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    for await (const change of listAndWatch(this.#options, signal)) this.#apply(change);
  }

  #apply(change: ItemChange): void {
    switch (change.type) {
      case "relist":
        this.#stale = new Set(this.#entries.keys());
        return;
      case "synced":
        for (const key of this.#stale ?? []) this.#drop(key);
        this.#stale = undefined;
        this.#isSynced = true;
        this.#synced.resolve();
        return;
      case "gone":
        this.#drop(itemKey(change.item));
        return;
      default:
        this.#put(change.item);
    }
  }

  #put(item: KubeItem): void {
    const key = itemKey(item);
    this.#stale?.delete(key);
    const before = this.#entries.get(key);
    const revision = item.metadata.resourceVersion;
    if (before?.revision === revision) return;
    const kept = this.#project(key, item);
    if (kept === undefined) {
      this.#drop(key);
      return;
    }
    if (before !== undefined && isDeepStrictEqual(kept, before.kept)) {
      before.revision = revision;
      return;
    }
    if (before !== undefined) this.#index(key, before.kept, "leave");
    this.#entries.set(key, { revision, kept });
    this.#index(key, kept, "enter");
    this.#notify(key, kept, before?.kept);
  }

  #drop(key: string): void {
    this.#stale?.delete(key);
    const before = this.#entries.get(key);
    if (before === undefined) return;
    this.#index(key, before.kept, "leave");
    this.#entries.delete(key);
    this.#notify(key, undefined, before.kept);
  }

  #project(key: string, item: KubeItem): P | undefined {
    try {
      return this.#options.project(item);
    } catch (error) {
      const { kind } = this.#options.resource;
      this.#log.error("object cannot be used", { kind, key, error });
      return undefined;
    }
  }

  #index(key: string, kept: P, how: "enter" | "leave"): void {
    for (const [name, valuesOf] of Object.entries(this.#options.indexes ?? {})) {
      const values = this.#indexes.get(name);
      for (const value of valuesOf(kept)) {
        const keys = values?.get(value) ?? new Set<string>();
        if (how === "enter") values?.set(value, keys.add(key));
        else if (keys.delete(key) && keys.size === 0) values?.delete(value);
      }
    }
  }

  #notify(key: string, now: P | undefined, before: P | undefined): void {
    for (const handler of this.#handlers) {
      try {
        handler(key, now, before);
      } catch (error) {
        this.#log.error("handler of a change failed", { kind: this.#options.resource.kind, key, error });
      }
    }
  }
}
