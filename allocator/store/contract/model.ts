// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Claim, ClaimStatus } from "../../model/claim.ts";
import type { Store, Stored } from "../store.ts";
import { bareClaim } from "./samples.ts";
import { converges, listed, syncedWatch } from "./subject.ts";

/** One step of a run. `seen` chooses among all that was ever seen of the claim: 0 the newest, others stale. */
export interface Step {
  readonly verb: "create" | "get" | "replace" | "report" | "remove" | "list";
  readonly name: string;
  readonly nonce: string;
  readonly seen: number;
}

/**
 * Takes the steps on an empty store and on a Map beside it, which must agree in every result and at the end, also
 * as a watch tells it. Leaves the store empty.
 */
export async function runBesideModel(store: Store, steps: readonly Step[]): Promise<void> {
  const watching = await syncedWatch(store, "claim");
  const model = new Model(store);
  try {
    for (const step of steps) await model.take(step);
    await model.check();
    await converges(watching, await listed(store, "claim"));
  } finally {
    await watching.stop();
    for (const stored of await listed(store, "claim")) await store.remove("claim", stored);
  }
}

class Model {
  readonly #store: Store;
  readonly #there = new Map<string, Stored<"claim">>(); // key -> what must be stored
  readonly #seen = new Map<string, Stored<"claim">[]>(); // key -> everything ever seen, newest first

  constructor(store: Store) {
    this.#store = store;
  }

  async take(step: Step): Promise<void> {
    const key = `shop/${step.name}`;
    const seen = this.#seen.get(key)?.[step.seen];
    if (step.verb === "create") return this.#create(key, bareClaim(step.name, { nonce: step.nonce }));
    if (step.verb === "list") return this.check();
    if (step.verb === "get" || seen === undefined) {
      assert.deepEqual(await this.#store.get("claim", key), this.#there.get(key));
      return;
    }
    if (step.verb === "remove") return this.#remove(seen);
    return this.#write(step.verb, seen, step.nonce);
  }

  /** The list is what must be stored. */
  async check(): Promise<void> {
    const expected = [...this.#there.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    assert.deepEqual(await listed(this.#store, "claim"), expected);
  }

  async #create(key: string, claim: Claim): Promise<void> {
    const there = this.#there.get(key);
    const result = await this.#store.create("claim", claim);
    if (there !== undefined) {
      assert.deepEqual(result, { kind: "exists", stored: there });
      return;
    }
    assert.equal(result.kind, "created");
    assert.deepEqual([result.stored.key, result.stored.record.nonce], [key, claim.nonce]);
    this.#note(result.stored);
  }

  async #remove(seen: Stored<"claim">): Promise<void> {
    const fits = this.#isThere(seen);
    assert.deepEqual(await this.#store.remove("claim", seen), { kind: fits ? "removed" : "conflict" });
    if (fits) this.#there.delete(seen.key);
  }

  async #write(verb: "replace" | "report", seen: Stored<"claim">, nonce: string): Promise<void> {
    const fits = this.#isThere(seen);
    const status: ClaimStatus = { message: nonce };
    const result =
      verb === "replace"
        ? await this.#store.replace("claim", seen, { ...seen.record, nonce, status })
        : await this.#store.report(seen, status);
    if (!fits) {
      assert.deepEqual(result, { kind: "conflict" });
      return;
    }
    assert.ok(result.kind === "replaced", "conflict");
    const { revision } = result.stored;
    assert.notEqual(revision, seen.revision);
    const change = verb === "replace" ? { nonce } : { status };
    assert.deepEqual(result.stored, { ...seen, revision, record: { ...seen.record, ...change } });
    this.#note(result.stored);
  }

  #isThere(seen: Stored<"claim">): boolean {
    const there = this.#there.get(seen.key);
    return there?.uid === seen.uid && there.revision === seen.revision;
  }

  #note(stored: Stored<"claim">): void {
    assert.ok(
      !this.#seen.get(stored.key)?.some(({ revision }) => revision === stored.revision),
      "revision given twice",
    );
    this.#there.set(stored.key, stored);
    this.#seen.set(stored.key, [stored, ...(this.#seen.get(stored.key) ?? [])]);
  }
}
