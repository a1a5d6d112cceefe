// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "../base/ports.ts";
import type { Address, Family } from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import type { Block } from "../model/block.ts";
import type { ClaimPhase } from "../model/claim.ts";
import type { ClaimPlace } from "../model/container-claim.ts";
import type { Occupant } from "../model/occupant.ts";
import { blockAround } from "../pool/blocks.ts";
import { type Pool, poolOf, rangeOf } from "../pool/pool.ts";
import type { Change, Kind, Stored } from "../store/store.ts";
import { AddressUse, type Held, type PoolTotals } from "./address-use.ts";
import { BlockIndex, type OwnedPart } from "./block-index.ts";
import { ClaimIndex } from "./claim-index.ts";
import { PoolIndex } from "./pool-index.ts";
import type { ClaimSelection, RecordHandler, RecordReader } from "./reader.ts";

/** Of a kind, by their key. */
interface Records<K extends Kind> {
  keys(): Iterable<string>;
  get(key: string): Stored<K> | undefined;
}

type Handlers = { readonly [K in Kind]: Set<RecordHandler<K>> };

/** The kinds that every process follows. Blocks are followed only where something is done with them. */
export const FOLLOWED: readonly Kind[] = ["pool", "claim", "reservation"];

/**
 * A view kept in memory from the store's watches. One owner applies changes; readers see whole changes only,
 * because nothing here awaits.
 */
export class RecordCache implements RecordReader {
  readonly ofContainers: true | undefined;
  readonly podIsGone: ClaimPlace["podIsGone"];
  readonly #log: Logger;
  readonly #pools: PoolIndex;
  readonly #use: AddressUse;
  readonly #stale = new Map<Kind, Set<string>>(); // kind -> keys not seen again in the running relist
  readonly #synced = new Set<Kind>();
  readonly #claims = new ClaimIndex();
  readonly #blocks = new BlockIndex();
  readonly #handlers: Handlers = {
    ...{ pool: new Set(), claim: new Set(), reservation: new Set(), block: new Set() },
  };

  constructor(log: Logger, { ofContainers, podIsGone }: ClaimPlace = {}) {
    this.#log = log;
    this.ofContainers = ofContainers;
    this.podIsGone = podIsGone;
    this.#pools = new PoolIndex(log);
    this.#use = new AddressUse(this.#pools, this.#blocks);
  }

  /** Each kind of FOLLOWED was listed whole at least once. */
  get ready(): boolean {
    return FOLLOWED.every((kind) => this.#synced.has(kind));
  }

  /** The kind was listed whole at least once. */
  knows(kind: Kind): boolean {
    return this.#synced.has(kind);
  }

  pool(name: string): Pool | undefined {
    return this.#pools.usable.get(name);
  }

  poolOf(address: Address): Pool | undefined {
    return poolOf(this.#pools.ordered, address);
  }

  pools(): readonly Pool[] {
    return this.#pools.ordered;
  }

  /** Those that cannot be used too. */
  poolRecords(): Iterable<Stored<"pool">> {
    return this.#pools.records.values();
  }

  poolRecord(name: string): Stored<"pool"> | undefined {
    return this.#pools.records.get(name);
  }

  reservation(address: Address): Stored<"reservation"> | undefined {
    return this.#use.reservations.get(address);
  }

  reservations(pool?: string): Iterable<Stored<"reservation">> {
    const { reservations } = this.#use;
    return pool === undefined
      ? reservations.values()
      : reservations.values(({ form }) => form.rest.pool === pool);
  }

  taken(pool: string): Held {
    return this.#use.taken(pool);
  }

  get reservationCount(): number {
    return this.#use.reservations.size;
  }

  /** Pool -> how many of its addresses have a reservation, kept current with each change. Pools that are gone count too. */
  reservationTotals(): ReadonlyMap<string, PoolTotals> {
    return this.#use.totals();
  }

  /** How many claims are in each phase, kept current with each change; without phases that no claim is in. */
  claimPhases(): ReadonlyMap<ClaimPhase, number> {
    return this.#claims.phases;
  }

  occupant(address: Address): Occupant | undefined {
    return this.#use.occupants.get(address);
  }

  occupants(): ReadonlyMap<Address, Occupant> {
    return this.#use.occupants;
  }

  /** To be called by who sees an address in use that Berth did not give: no record says so. */
  occupy(address: Address, occupant: Occupant): void {
    this.#use.occupy(address, occupant);
  }

  vacate(address: Address): void {
    this.#use.vacate(address);
  }

  block(cidr: string): Stored<"block"> | undefined {
    return this.#blocks.blocks.get(cidr);
  }

  blockOwning(address: Address): Block | undefined {
    return this.#blocks.owning(address);
  }

  strayBlock(address: Address): Block | undefined {
    const block = this.#blocks.owning(address);
    const home = block && this.#pools.usable.get(block.pool);
    const isIn = home !== undefined && rangeOf(home, address) !== undefined;
    if (block === undefined || !isIn) return block;
    return blockAround(home, address)?.text === (block.within ?? block.cidr) ? undefined : block;
  }

  blocksOf(pool: string): Iterable<Stored<"block">> {
    return this.#blocks.ofPool(pool);
  }

  blocksOver(pool: Pool, family: Family): Iterable<OwnedPart> {
    return this.#blocks.over(pool, family);
  }

  /** Those of pools that are gone, too. */
  blocks(): Iterable<Stored<"block">> {
    return this.#blocks.blocks.values();
  }

  claim(key: string): Stored<"claim"> | undefined {
    return this.#claims.claims.get(key);
  }

  claims(of?: ClaimSelection): Iterable<Stored<"claim">> {
    const { claims } = this.#claims;
    if (of === undefined) return claims.values();
    if (of === "retained") return claims.values(({ form }) => form.because !== undefined);
    if (of === "successors") return claims.values(({ form }) => form.rest.takesOver !== undefined);
    return this.#claims.ofWorkload(of.kind, of.namespace, of.name);
  }

  claimsOfPod(namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#claims.ofPod(namespace, name);
  }

  claimsOfWorkload(kind: string, namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#claims.ofWorkload(kind, namespace, name);
  }

  claimsOnNode(node: string): readonly Stored<"claim">[] {
    return this.#claims.onNode(node);
  }

  /** Calls the handler after each change of the kind from now on. Returns what removes the handler. */
  onChange<K extends Kind>(kind: K, handler: RecordHandler<K>): () => void {
    const handlers: Set<RecordHandler<K>> = this.#handlers[kind];
    handlers.add(handler);
    return () => handlers.delete(handler);
  }

  held(pool: string, namespace: string): Held {
    return this.#use.held(pool, namespace);
  }

  cooling(pool: string, namespace: string): Held {
    return this.#use.cooling(pool, namespace);
  }

  inOrder(): boolean {
    return this.#synced.has("reservation") && !this.#stale.has("reservation");
  }

  unpickable(pool: Pool, family: Family): IntervalSet {
    return this.#use.unpickable(pool, family);
  }

  /** Takes one change of a watch. `gone` of a key never seen is nothing. */
  apply<K extends Kind>(kind: K, change: Change<K>): void {
    switch (change.type) {
      case "relist":
        this.#stale.set(kind, new Set(this.#of(kind).keys()));
        return;
      case "synced":
        for (const key of this.#stale.get(kind) ?? []) this.#change(kind, key);
        this.#stale.delete(kind);
        this.#synced.add(kind);
        return;
      case "gone":
        this.#change(kind, change.key);
        return;
      default:
        this.#stale.get(kind)?.delete(change.stored.key);
        this.#change(kind, change.stored.key, change.stored);
    }
  }

  /** A relist brings every record again: handlers are told of those that differ. */
  #change<K extends Kind>(kind: K, key: string, came?: Stored<K>): void {
    const before = this.#of(kind).get(key);
    if (before?.revision === came?.revision && before?.uid === came?.uid) return;
    if (came === undefined) this.#drop(kind, key);
    else this.#put(kind, came);
    for (const handler of this.#handlers[kind] as Set<RecordHandler<K>>) {
      try {
        handler(key, came, before);
      } catch (error) {
        this.#log.error("handler of a change failed", { kind, key, error });
      }
    }
  }

  #of<K extends Kind>(kind: K): Records<K> {
    const records = {
      pool: this.#pools.records,
      claim: this.#claims.claims,
      reservation: this.#use.reservations,
      block: this.#blocks.blocks,
    };
    return records[kind] as Records<Kind> as Records<K>;
  }

  #put(kind: Kind, stored: Stored<Kind>): void {
    if (kind === "claim") {
      this.#claims.enter(stored as Stored<"claim">);
    } else if (kind === "reservation") {
      this.#use.addReservation(stored as Stored<"reservation">);
    } else if (kind === "block") {
      this.#dropBlock(stored.key);
      this.#blocks.enter(stored as Stored<"block">);
      this.#use.addBlock(stored as Stored<"block">);
    } else if (this.#pools.put(stored as Stored<"pool">)) {
      this.#use.recount(stored.key);
    }
  }

  #drop(kind: Kind, key: string): void {
    if (kind === "claim") {
      this.#dropClaim(key);
    } else if (kind === "reservation") {
      this.#use.dropReservation(key);
    } else if (kind === "block") {
      this.#dropBlock(key);
    } else {
      this.#pools.drop(key);
      this.#use.recount(key);
    }
  }

  #dropClaim(key: string): void {
    const stored = this.#claims.claims.get(key);
    if (stored !== undefined) this.#claims.leave(stored);
  }

  #dropBlock(key: string): void {
    const stored = this.#blocks.blocks.get(key);
    if (stored === undefined) return;
    this.#blocks.leave(stored);
    this.#use.dropBlock(stored);
  }
}
