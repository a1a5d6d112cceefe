// SPDX-License-Identifier: Apache-2.0
import { isCorrupt } from "../base/errors.ts";
import { inParallel } from "../base/parallel.ts";
import type { Kind, Store, Stored } from "../store/store.ts";

/** What a decision that writes nothing needs of the store. */
export type Reading = Pick<Store, "get">;

/** What a decision is read ahead from. */
type Source = Pick<Store, "get" | "list" | "listAtOnce">;

/** So many records of one decision are read at a time: an API server serves many, and others ask it too. */
const AT_ONCE = 16;
/** So many claims of a namespace are cheaper to list than to read one by one, unless one answer does not have them all. */
const WORTH_A_LIST = 8;
const PAGE = 500;
/** What is answered may lead to other questions so often; after that each is asked when it comes. */
const ROUNDS = 8;

/**
 * Decides by the store about many entries at once. `decide` asks for one record after the other, and is run with what
 * is known: whatever it asks for beyond that is taken to be absent, read, many at a time, and `decide` is run again.
 * What counts is a run that asked for nothing unknown: all that it saw was in the store during this decision, each record
 * read once. `decide` writes nothing, and anything that it counts or tells begins anew with each run.
 */
export async function readingAhead<T>(store: Source, decide: (store: Reading) => Promise<T>): Promise<T> {
  const known = new Known(store);
  for (let round = 0; round < ROUNDS; round++) {
    const decision = await outcomeOf(() => decide(known.guess));
    if (!known.isAsked) return whole(decision);
    await known.readAsked();
  }
  return await decide(known);
}

const KINDS: readonly Kind[] = ["pool", "claim", "reservation", "block"];

type Outcome<T> = { readonly value: T } | { readonly fault: unknown };

/** Of what was guessed a fault may come, too. */
async function outcomeOf<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await work() };
  } catch (fault) {
    return { fault };
  }
}

function whole<T>(outcome: Outcome<T>): T {
  if ("fault" in outcome) throw outcome.fault;
  return outcome.value;
}

/** As a read of it ended: a record that cannot be read matters to who asks for it, and to nobody else. */
type Found<K extends Kind> = Outcome<Stored<K> | undefined>;

class Known implements Reading {
  readonly #store: Source;
  readonly #found: { readonly [K in Kind]: Map<string, Found<K>> } = {
    ...{ pool: new Map(), claim: new Map(), reservation: new Map(), block: new Map() },
  };
  readonly #asked: { readonly [K in Kind]: Set<string> } = {
    ...{ pool: new Set(), claim: new Set(), reservation: new Set(), block: new Set() },
  };

  constructor(store: Source) {
    this.#store = store;
  }

  get isAsked(): boolean {
    return KINDS.some((kind) => this.#asked[kind].size > 0);
  }

  /** Answers from what is known. */
  readonly guess: Reading = {
    get: async (kind, key) => {
      const found = this.#found[kind].get(key);
      if (found !== undefined) return whole(found);
      this.#asked[kind].add(key);
      return undefined;
    },
  };

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return whole(this.#found[kind].get(key) ?? (await this.#read(kind, key)));
  }

  async readAsked(): Promise<void> {
    await this.#listAsked();
    const asked = KINDS.flatMap((kind) => [...this.#asked[kind]].map((key) => ({ kind, key })));
    for (const kind of KINDS) this.#asked[kind].clear();
    await inParallel(asked, AT_ONCE, ({ kind, key }) => this.#read(kind, key));
  }

  /** Claims of a namespace of which many are asked for, in one call. */
  async #listAsked(): Promise<void> {
    const asked = Map.groupBy(this.#asked.claim, (key) => key.slice(0, key.indexOf("/")));
    for (const [namespace, keys] of asked) {
      const listed = keys.length < WORTH_A_LIST ? undefined : await this.#listed(namespace);
      if (listed === undefined) continue;
      for (const key of keys) {
        this.#found.claim.set(key, { value: listed.get(key) });
        this.#asked.claim.delete(key);
      }
    }
  }

  /**
   * Undefined where it has more than a page of claims, in number or in bytes, which whoever fills the namespace decides; or
   * one that cannot be read and may be nobody's concern.
   */
  async #listed(namespace: string): Promise<ReadonlyMap<string, Stored<"claim">> | undefined> {
    try {
      const all = await (this.#store.listAtOnce?.("claim", namespace) ?? this.#firstOf(namespace));
      return all && new Map(all.map((stored) => [stored.key, stored]));
    } catch (error) {
      if (isCorrupt(error)) return undefined;
      throw error;
    }
  }

  async #firstOf(namespace: string): Promise<readonly Stored<"claim">[] | undefined> {
    const all: Stored<"claim">[] = [];
    for await (const stored of this.#store.list("claim", namespace)) {
      if (all.length === PAGE) return undefined;
      all.push(stored);
    }
    return all;
  }

  async #read<K extends Kind>(kind: K, key: string): Promise<Found<K>> {
    const found = await outcomeOf(() => this.#store.get(kind, key));
    this.#found[kind].set(key, found);
    return found;
  }
}
