// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../base/errors.ts";
import type { Clock, Logger, Metrics, Random } from "../../base/ports.ts";
import type { BlockStatus } from "../../model/block.ts";
import type { Claim, ClaimStatus } from "../../model/claim.ts";
import type { Reservation } from "../../model/reservation.ts";
import { keyOf } from "../codec.ts";
import type {
  Change,
  ClaimCreated,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../store.ts";
import { asCreated, mustBeOpen, withStatusOf } from "../writes.ts";
import type { EtcdClient } from "./client.ts";
import { createTogether } from "./create-together.ts";
import { etcdKey, headOf, PREFIX, rangeOf, readable, recordKey, storedOf, textOf } from "./entry.ts";
import { followKind } from "./follow.ts";
import { judgeLost } from "./lost-answers.ts";
import type { KeyValue } from "./messages.ts";
import { pagesOf } from "./pages.ts";
import { guarded, type WriteGuard, type Writer } from "./write-guard.ts";

interface EtcdStoreDeps {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Before the keys of all records; /berth/v1 if absent. */
  readonly prefix?: string;
  /** Records in a page of a list, 500 if absent. */
  readonly pageSize?: number;
  readonly metrics?: Metrics;
  /** Told of what a list cannot read, which it passes over. Absent: the list throws. */
  readonly unreadable?: (kind: Kind, key: string, fault: BerthError) => void;
  /** What has to be so whenever an address is given; absent: nothing. */
  readonly guard?: WriteGuard;
}

/** How often a write is sent whose answers are lost, and until when. */
const SENDS = 4;
const SEND_MS = 10_000;

/**
 * The store in etcd. Every write is one transaction on the revision at which its key was written last, 0 for a key that
 * is not there. Closing the store ends its watches; the client belongs to whoever made it.
 */
export function openEtcdStore(deps: EtcdStoreDeps): Store {
  return new EtcdStore(deps);
}

class EtcdStore implements Store {
  readonly #deps: EtcdStoreDeps;
  readonly #prefix: string;
  readonly #closing = new AbortController();
  /** What was read here and is as it was read: no second look is needed before it is changed. */
  readonly #read = new WeakSet<Stored<Kind>>();

  constructor(deps: EtcdStoreDeps) {
    this.#deps = deps;
    this.#prefix = deps.prefix ?? PREFIX;
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    mustBeOpen(this.#closing);
    const { clock, random } = this.#deps;
    const client = this.#writer(kind === "reservation" || this.#gives(kind, record));
    const key = this.#keyOf(kind, keyOf(kind, record));
    const createdAt = Math.floor(clock.now());
    const sent = new Set<string>(); // of each write that was sent
    let lost: BerthError | undefined;
    for (const _ of this.#sends()) {
      const write = random.token();
      const value = textOf(kind, { uid: write, createdAt, write }, asCreated(kind, record));
      sent.add(write);
      const answer = await client.change({ key, modRevision: 0, value });
      if (answer.kind === "lost") lost = answer.error;
      else if (answer.done) return { kind: "created", stored: this.#own(kind, key, value, answer.revision) };
      else if (answer.there !== undefined) {
        // whoever has written it since has kept its uid
        const ours = lost !== undefined && sent.has(headOf(answer.there).uid);
        return { kind: ours ? "created" : "exists", stored: this.#stored(kind, answer.there) };
      }
    }
    throw lost ?? new BerthError("INTERNAL", `etcd neither made ${key} nor has it`);
  }

  async createClaim(claim: Claim, reservations: readonly Reservation[]): Promise<ClaimCreated> {
    mustBeOpen(this.#closing);
    const { clock, random } = this.#deps;
    const client = this.#writer(true);
    const parts = {
      sends: this.#sends(),
      prefix: this.#prefix,
      readAs: <K extends Kind>(kind: K, entry: KeyValue) => this.#stored(kind, entry),
    };
    return await createTogether({ client, clock, random, ...parts }, claim, reservations);
  }

  async get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    mustBeOpen(this.#closing);
    const { entries } = await this.#deps.client.range({ key: this.#keyOf(kind, key) });
    return entries[0] && this.#stored(kind, entries[0]);
  }

  async replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    if (keyOf(kind, next) !== seen.key) {
      throw new BerthError("INTERNAL", `${kind} ${seen.key} cannot become ${keyOf(kind, next)}`);
    }
    return await this.#change(kind, seen, (there) => withStatusOf<K>(there, next));
  }

  async report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return await this.#change("claim", seen, (there) => ({ ...there, status }));
  }

  async reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    return await this.#change("block", seen, (there) => ({ ...there, status }));
  }

  async remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    mustBeOpen(this.#closing);
    const there = await this.#asSeen(kind, seen);
    if (there === undefined) return this.#conflict();
    const change = { key: this.#keyOf(kind, seen.key), modRevision: Number(there.revision) };
    let lost: BerthError | undefined;
    for (const _ of this.#sends()) {
      const answer = await this.#deps.client.change(change);
      if (answer.kind === "lost") lost = answer.error;
      else if (answer.done) return { kind: "removed" };
      // the same incarnation is there, so the lost one has not deleted it
      else if (lost === undefined || (answer.there && headOf(answer.there).uid === there.uid)) {
        return this.#conflict();
      } else break; // gone, by this hand or another's
    }
    throw lost ?? new BerthError("INTERNAL", `etcd neither deletes ${change.key} nor says why`);
  }

  async *list<K extends Kind>(kind: K, namespace?: string): AsyncGenerator<Stored<K>, void, void> {
    mustBeOpen(this.#closing);
    const range = rangeOf(kind, this.#prefix, namespace);
    for await (const { entries } of pagesOf(this.#deps, range)) {
      for (const entry of entries) {
        const stored = this.#listed(kind, entry);
        if (stored !== undefined) yield stored;
      }
    }
  }

  #listed<K extends Kind>(kind: K, entry: KeyValue): Stored<K> | undefined {
    const { unreadable } = this.#deps;
    if (unreadable === undefined) return this.#stored(kind, entry);
    const tell = (fault: BerthError) => unreadable(kind, recordKey(kind, entry.key, this.#prefix), fault);
    return readable(() => this.#stored(kind, entry), tell);
  }

  watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncIterable<Change<K>> {
    const { client, clock, random, log } = this.#deps;
    const range = rangeOf(kind, this.#prefix);
    const pages = () => pagesOf(this.#deps, range);
    const read = (entry: KeyValue) => this.#stored(kind, entry);
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    return followKind({ kind, client, clock, random, log, range, pages, read, signal: ends });
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  /** Compare-and-set on the revision that was seen. */
  async #change<K extends Kind>(
    kind: K,
    seen: Stored<K>,
    next: (there: Records[K]) => Records[K],
  ): Promise<ReplaceResult<K>> {
    mustBeOpen(this.#closing);
    const there = await this.#asSeen(kind, seen);
    if (there === undefined) return this.#conflict();
    const { client, random } = this.#deps;
    const key = this.#keyOf(kind, seen.key);
    const modRevision = Number(there.revision);
    const write = random.token();
    const { uid, createdAt } = there;
    const record = next(there.record);
    const value = textOf(kind, { uid, createdAt, write }, record, there);
    const writer = this.#writer(this.#gives(kind, record));
    let lost: BerthError | undefined;
    for (const _ of this.#sends()) {
      const answer = await writer.change({ key, modRevision, value });
      if (answer.kind === "lost") {
        lost = answer.error;
        continue;
      }
      if (answer.done) return { kind: "replaced", stored: this.#own(kind, key, value, answer.revision) };
      if (lost === undefined) return this.#conflict();
      const ours = await judgeLost(client, { there: answer.there, modRevision, write });
      if (ours === "unknown") throw lost;
      return ours === "not done" ? this.#conflict() : { kind: "replaced", stored: this.#stored(kind, ours) };
    }
    throw lost ?? new BerthError("INTERNAL", `etcd neither writes ${key} nor says why`);
  }

  #gives<K extends Kind>(kind: K, record: Records[K]): boolean {
    return kind === "claim" && this.#deps.guard?.covers(record as Claim) === true;
  }

  #writer(gives: boolean): Writer {
    const { client, guard } = this.#deps;
    return gives && guard !== undefined ? guarded(client, guard) : client;
  }

  *#sends(): Generator<number, void, void> {
    const { clock } = this.#deps;
    const until = clock.monotonic() + SEND_MS;
    for (let send = 0; send < SENDS && (send === 0 || clock.monotonic() < until); send++) yield send;
  }

  /** What is stored, if it is exactly what was seen. */
  async #asSeen<K extends Kind>(kind: K, seen: Stored<K>): Promise<Stored<K> | undefined> {
    if (this.#read.has(seen)) return seen;
    const there = await this.get(kind, seen.key);
    return there?.uid === seen.uid && there.revision === seen.revision ? there : undefined;
  }

  /** What was just written. */
  #own<K extends Kind>(kind: K, key: string, value: string, revision: number): Stored<K> {
    return this.#stored(kind, { key, value, createRevision: revision, modRevision: revision });
  }

  #stored<K extends Kind>(kind: K, entry: KeyValue): Stored<K> {
    const stored = storedOf(kind, entry, this.#prefix);
    this.#read.add(stored);
    return stored;
  }

  #keyOf(kind: Kind, key: string): string {
    return etcdKey(kind, key, this.#prefix);
  }

  #conflict(): { readonly kind: "conflict" } {
    this.#deps.metrics?.increment("berth_store_conflicts_total");
    return { kind: "conflict" };
  }
}
