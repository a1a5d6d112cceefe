// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";
import type { Block, BlockStatus } from "../model/block.ts";
import type { Claim, ClaimStatus } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { PoolRecord } from "../pool/pool.ts";

/** What is stored, by kind. Keys: a pool's name, a claim's namespace/name, a reservation's address, a block's CIDR. */
export interface Records {
  readonly pool: PoolRecord;
  readonly claim: Claim;
  readonly reservation: Reservation;
  readonly block: Block;
}
export type Kind = keyof Records;

/**
 * Something in a stored record that a newer Berth wrote and this one does not know: a field, or a value of a field
 * (another phase). It is ignored, kept beside the record, and written back with it: both versions may run at once.
 */
export interface Unknown {
  /** Fields from the record to the object that it is in. */
  readonly path: readonly string[];
  readonly key: string;
  readonly value: unknown;
  /** Of a value: what it is taken for here. As long as the field says so, the value stays. */
  readonly takenFor?: unknown;
}

/** A record as the store holds it. */
export interface Stored<K extends Kind> {
  readonly key: string;
  readonly record: Records[K];
  /** Of this incarnation: a record deleted and created again under its key has another one. */
  readonly uid: string;
  /** Opaque; changes with every write. */
  readonly revision: string;
  /** Milliseconds since 1970, by the store's clock. */
  readonly createdAt: number;
  /** Of a claim in Kubernetes that has any: whoever stands here must let it go before it is gone. */
  readonly finalizers?: readonly string[];
  /** What is stored with it and not known here: a replace and a report keep it. */
  readonly unknown?: readonly Unknown[];
}

export type CreateResult<K extends Kind> =
  | { readonly kind: "created"; readonly stored: Stored<K> }
  | { readonly kind: "exists"; readonly stored: Stored<K> };

/** `exists`: nothing was written, as these keys are there. */
export type ClaimCreated =
  | {
      readonly kind: "created";
      readonly claim: Stored<"claim">;
      readonly reservations: readonly Stored<"reservation">[];
    }
  | { readonly kind: "exists"; readonly claim: boolean; readonly addresses: readonly Address[] };

export type ReplaceResult<K extends Kind> =
  | { readonly kind: "replaced"; readonly stored: Stored<K> }
  | { readonly kind: "conflict" };

export type RemoveResult = { readonly kind: "removed" } | { readonly kind: "conflict" };

/**
 * `relist` opens a full pass (at the start and after every gap), in which each record comes as `put`; `synced`
 * closes it: what was known before and did not come again is gone. Then changes, in the order of their revisions.
 */
export type Change<K extends Kind> =
  | { readonly type: "relist" }
  | { readonly type: "synced" }
  | { readonly type: "put"; readonly stored: Stored<K> }
  | { readonly type: "gone"; readonly key: string };

/**
 * The records themselves. Uniqueness comes from `create` alone, every change from a compare-and-set on the revision.
 *
 * Every verb throws BerthError STORE_UNAVAILABLE, STORE_FULL, STORE_READ_ONLY or TIMED_OUT when it cannot know
 * or do, STATE_CORRUPT, naming the key, for a record that does not decode, and a write WRITE_REFUSED for one that a
 * quota or policy forbids. After STORE_UNAVAILABLE or TIMED_OUT of a write the write may have happened; after any
 * other fault it has not.
 */
export interface Store {
  /**
   * Set where `createdAt` is the whole second of a clock that those who keep the records have, whoever wrote them: two records of
   * one second are less than a second apart. Absent where each writer's own clock says it.
   */
  readonly stampsSeconds?: true;
  /** Create-if-absent on the record's key. Of any number of racing creates exactly one answers `created`. */
  create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>>;
  /**
   * Where the last create of a claim in its namespace was refused: throws as `create` would, and writes nothing. Costs
   * nothing elsewhere. Absent in a store that refuses no record.
   */
  mayCreate?(claim: Claim): Promise<void>;
  /**
   * Create-if-absent of a claim, with its status, and of its reservations: all of them in one moment, or nothing. Absent in
   * a store that writes one record at a time.
   */
  createClaim?(claim: Claim, reservations: readonly Reservation[]): Promise<ClaimCreated>;
  /** Read from where the records are, never from a cache. */
  get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined>;
  /**
   * Writes everything but the status; `conflict` when `seen` is no longer what is stored, or is gone. A claim that is
   * `deleting` may be gone with the write that ends its binding.
   */
  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>>;
  /** As `replace`, and its status in the same moment. Absent in a store that keeps the two apart. */
  replaceClaim?(seen: Stored<"claim">, next: Claim): Promise<ReplaceResult<"claim">>;
  /** Writes the status of a claim and nothing else. */
  report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">>;
  /** Writes the status of a block and nothing else. */
  reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">>;
  /**
   * Deletes exactly what was seen (uid and revision); `conflict` when that is no longer what is stored. In Kubernetes a
   * claim that is bound to a node is only marked (`deleting`), and goes when it is bound no more.
   */
  remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult>;
  /**
   * Every record of the kind as of one moment, paged underneath, in the order of keys. With a namespace, those of it at
   * least: a store that can do so leaves the others out.
   */
  list<K extends Kind>(kind: K, namespace?: string): AsyncIterable<Stored<K>>;
  /**
   * All of a namespace, by one call; undefined where one answer does not have them all. Absent in a store where many records
   * cost no more than to read them.
   */
  listAtOnce?<K extends Kind>(kind: K, namespace: string): Promise<readonly Stored<K>[] | undefined>;
  /** Follows the kind until `signal` aborts. Never ends by itself and never throws for a lost connection: it resumes. */
  watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncIterable<Change<K>>;
  close(): Promise<void>;
}
