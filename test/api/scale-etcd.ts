// SPDX-License-Identifier: Apache-2.0

export interface Entry {
  readonly key: string;
  /** Written as JSON. */
  readonly value: unknown;
}

/** Entries in one transaction: etcd takes 128 operations. */
const AT_ONCE = 128;

/** etcd through its JSON gateway, for filling the API server's own store. */
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

  async putAll(entries: Iterable<Entry>): Promise<void> {
    let puts: unknown[] = [];
    for (const { key, value } of entries) {
      puts.push({ requestPut: { key: base64(key), value: base64(JSON.stringify(value)) } });
      if (puts.length < AT_ONCE) continue;
      await this.#ask("txn", { success: puts });
      puts = [];
    }
    if (puts.length > 0) await this.#ask("txn", { success: puts });
  }

  async #ask(verb: string, body: unknown): Promise<unknown> {
    const answer = await fetch(`${this.#url}/v3/kv/${verb}`, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd refuses to ${verb}: ${await answer.text()}`);
    return await answer.json();
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
