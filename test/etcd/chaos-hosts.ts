// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { BerthError, isDefinite } from "../../allocator/base/errors.ts";
import { nth, reservationOf } from "../../allocator/store/contract/samples.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";

/** What hosts believe to hold, in one place, so that two who believe the same are seen at once. */
export class Ledger {
  readonly #holders = new Map<string, { readonly host: string; readonly stored: Stored<"reservation"> }>();
  /** Nonces of writes of which nobody could say whether they were done. */
  readonly #open = new Set<string>();
  readonly refusals: BerthError[] = [];
  created = 0;
  doubles = 0;

  take(host: string, stored: Stored<"reservation">): void {
    if (this.#holders.has(stored.key)) this.doubles++;
    this.#holders.set(stored.key, { host, stored });
    this.created++;
  }

  /** Before it is removed: from then on anybody may have it. */
  let(key: string): void {
    this.#holders.delete(key);
  }

  /** `nonce` is that of the write which threw it. */
  fail(error: unknown, nonce: string): void {
    if (!(error instanceof BerthError)) throw error;
    this.refusals.push(error);
    if (!isDefinite(error)) this.#open.add(nonce);
  }

  heldBy(host: string): readonly Stored<"reservation">[] {
    return [...this.#holders.values()].filter((one) => one.host === host).map(({ stored }) => stored);
  }

  /** What is held is stored as it was written; what is stored and not held is what nobody could know. */
  async check(store: Store): Promise<void> {
    const there = new Map((await listed(store, "reservation")).map((stored) => [stored.key, stored]));
    const lost = [...this.#holders.values()].filter(({ stored }) => {
      const now = there.get(stored.key);
      return now?.uid !== stored.uid || now.record.nonce !== stored.record.nonce;
    });
    assert.deepEqual(lost, [], "lost");
    const strays = [...there.values()].filter(
      ({ key, record }) => !this.#holders.has(key) && !this.#open.has(record.nonce),
    );
    assert.deepEqual(strays, [], "held by nobody, and not open");
    assert.equal(this.doubles, 0);
  }
}

/** A host that takes addresses of a small range and gives them back, until `signal` aborts. */
export async function liveAs(
  host: string,
  store: Store,
  ledger: Ledger,
  { range, signal }: { readonly range: number; readonly signal: AbortSignal },
): Promise<void> {
  for (let i = 0; !signal.aborted; i++) {
    const nonce = `${host}-${i}`;
    const held = ledger.heldBy(host);
    try {
      const oldest = held[0];
      if (oldest !== undefined && held.length > range / 5) {
        ledger.let(oldest.key);
        await store.remove("reservation", oldest);
        continue;
      }
      const address = nth((i * 7 + host.length * 13 + Math.floor(Math.random() * range)) % range);
      const result = await store.create("reservation", reservationOf(address, { nonce }));
      if (result.kind === "created") ledger.take(host, result.stored);
    } catch (error) {
      // a removal that is not known leaves a record of the nonce it was made with
      const oldest = held[0];
      ledger.fail(error, oldest !== undefined && held.length > range / 5 ? oldest.record.nonce : nonce);
    }
  }
}
