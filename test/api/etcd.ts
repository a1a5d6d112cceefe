// SPDX-License-Identifier: Apache-2.0

export interface Entry {
  readonly key: string;
  /** Written as JSON. */
  readonly value: unknown;
}

/** A key as it is stored. */
export interface StoredKey {
  readonly key: string;
  /** At which revision it was written last. */
  readonly revision: string;
  /** In base64; absent where it was not asked for. */
  readonly value?: string;
}

/** What a transaction does. */
export type Operation =
  | { readonly requestPut: { readonly key: string; readonly value: string } }
  | { readonly requestDeleteRange: { readonly key: string; readonly range_end: string } };

/** Entries in one transaction: etcd takes 128 operations. */
const AT_ONCE = 128;

/** etcd through its JSON gateway: past the API server, which hears of every change by its watch. */
export class Etcd {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** The JSON under a key that is there. */
  async get(key: string): Promise<unknown> {
    const answer = (await this.#ask("range", { key: base64(key) })) as { kvs?: { value: string }[] };
    const value = answer.kvs?.[0]?.value;
    if (value === undefined) throw new Error(`etcd has nothing under ${key}`);
    return JSON.parse(Buffer.from(value, "base64").toString("utf8"));
  }

  /** All keys in their order, with their values or without. */
  async keys(how: { readonly values: boolean }): Promise<readonly StoredKey[]> {
    const body = { key: base64("\0"), range_end: base64("\0"), keys_only: !how.values };
    const { kvs = [] } = (await this.#ask("range", body)) as {
      kvs?: { key: string; mod_revision: string; value?: string }[];
    };
    return kvs.map(({ key, mod_revision, value }) => ({
      key: Buffer.from(key, "base64").toString("utf8"),
      revision: mod_revision,
      ...(value === undefined ? {} : { value }),
    }));
  }

  async putAll(entries: Iterable<Entry>): Promise<void> {
    let puts: Operation[] = [];
    for (const { key, value } of entries) {
      puts.push(put(key, base64(JSON.stringify(value))));
      if (puts.length < AT_ONCE) continue;
      await this.apply(puts);
      puts = [];
    }
    await this.apply(puts);
  }

  /** Does all of it, as many in one transaction as etcd takes. */
  async apply(operations: readonly Operation[]): Promise<void> {
    for (let at = 0; at < operations.length; at += AT_ONCE) {
      await this.#ask("txn", { success: operations.slice(at, at + AT_ONCE) });
    }
  }

  /**
   * Each key at a revision of its own, as the API server deletes them: a watch of it that breaks off amid several of one
   * revision never hears of the others.
   */
  async removeEach(keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.apply([removeRange(key, key)]);
  }

  async #ask(verb: string, body: unknown): Promise<unknown> {
    const answer = await fetch(`${this.#url}/v3/kv/${verb}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd refuses to ${verb}: ${await answer.text()}`);
    return await answer.json();
  }
}

/** The value is in base64. */
export function put(key: string, value: string): Operation {
  return { requestPut: { key: base64(key), value } };
}

/** All keys from the first to the last. */
export function removeRange(first: string, last: string): Operation {
  return { requestDeleteRange: { key: base64(first), range_end: base64(`${last}\0`) } };
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
