// SPDX-License-Identifier: Apache-2.0
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import { isForbidden } from "./if-allowed.ts";

/**
 * The records that this user may read: whoever owns a namespace may read its claims, and need not be allowed to read pools,
 * reservations and blocks, which are the cluster's. These are as if there were none, and are noted as hidden.
 */
export class AllowedRecords implements Pick<Store, "get" | "list"> {
  readonly #store: Pick<Store, "get" | "list">;
  readonly #needed: readonly Kind[];
  readonly #hidden = new Set<Kind>();

  /** Of the kinds that are needed a refusal is thrown: a command about one claim or pod can say nothing without claims. */
  constructor(store: Pick<Store, "get" | "list">, needed: readonly Kind[] = ["claim"]) {
    this.#store = store;
    this.#needed = needed;
  }

  get hidden(): ReadonlySet<Kind> {
    return this.#hidden;
  }

  /** Something of the kind was asked for, and may not be read. */
  hides(kind: Kind): boolean {
    return this.#hidden.has(kind);
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    try {
      return await this.#store.get(kind, key);
    } catch (error) {
      this.#hide(kind, error);
      return undefined;
    }
  }

  async *list<K extends Kind>(kind: K): AsyncGenerator<Stored<K>, void, void> {
    try {
      yield* this.#store.list(kind);
    } catch (error) {
      this.#hide(kind, error);
    }
  }

  #hide(kind: Kind, error: unknown): void {
    if (this.#needed.includes(kind) || !isForbidden(error)) throw error;
    this.#hidden.add(kind);
  }
}
