// SPDX-License-Identifier: Apache-2.0
import type { Answer, Call, Connection, Stream } from "../api/connection.ts";

/** A connection to an API server that has objects of these sizes, and lists them in pages, as bounded as it is asked. */
export class PagingConnection implements Connection {
  readonly #sizes: readonly number[];
  /** Of each page that was asked for. */
  readonly limits: number[] = [];
  /** Bytes of the largest answer that was read. */
  most = 0;
  /** Answers that were larger than they might be. */
  inVain = 0;

  constructor(sizes: readonly number[]) {
    this.#sizes = sizes;
  }

  get names(): string[] {
    return this.#sizes.map((_, at) => `o-${at}`);
  }

  async call({ query = {}, mostBytes = Number.POSITIVE_INFINITY }: Call): Promise<Answer> {
    const limit = Number(query["limit"]);
    this.limits.push(limit);
    const from = Number(query["continue"] ?? 0);
    const to = Math.min(from + limit, this.#sizes.length);
    const bytes = this.#sizes.slice(from, to).reduce((sum, size) => sum + size, 0);
    if (bytes > mostBytes) {
      this.inVain++;
      return { status: 200, body: undefined, isTooLarge: true };
    }
    this.most = Math.max(this.most, bytes);
    const metadata = { resourceVersion: "9", ...(to < this.#sizes.length ? { continue: String(to) } : {}) };
    return { status: 200, bytes, body: { metadata, items: this.names.slice(from, to).map(claimOf) } };
  }

  async stream(): Promise<Stream | Answer> {
    return { status: 400, body: "" };
  }

  close(): void {}
}

function claimOf(name: string) {
  return {
    metadata: {
      ...{ namespace: "shop", name, uid: `uid-${name}`, resourceVersion: "1" },
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    spec: {
      identity: { kind: "Pod", apiVersion: "v1", name },
      ...{ request: {}, addresses: [], nonce: "n" },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttl: null },
    },
  };
}
