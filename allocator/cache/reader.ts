// SPDX-License-Identifier: Apache-2.0
import type { Address, Family } from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import type { Block } from "../model/block.ts";
import type { Claim } from "../model/claim.ts";
import type { ClaimPlace } from "../model/container-claim.ts";
import type { Occupant } from "../model/occupant.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Pool } from "../pool/pool.ts";
import type { Kind, Store, Stored } from "../store/store.ts";
import type { OwnedPart } from "./block-index.ts";

/** Whose claims are looked for. */
interface Workload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Which claims are looked for: of a workload, those that are retained, or those that wait to take over from another. */
export type ClaimSelection = Workload | "retained" | "successors";

/** What changed under a key; `now` undefined: gone, `before` undefined: new. Only enqueues: it is called in the middle of a change. */
export type RecordHandler<K extends Kind> = (
  key: string,
  now: Stored<K> | undefined,
  before: Stored<K> | undefined,
) => void;

/**
 * What is known of the store at this moment, for planning: it may lag behind, so it proposes and never proves.
 * Uniqueness and every change are settled by the store.
 */
export interface RecordReader extends ClaimPlace {
  pool(name: string): Pool | undefined;
  /** The pool whose ranges contain the address. */
  poolOf(address: Address): Pool | undefined;
  /** By priority, highest first, then by name. */
  pools(): readonly Pool[];
  /** As they are stored, those that cannot be used too. Absent: all can. */
  poolRecords?(): Iterable<Stored<"pool">>;
  reservation(address: Address): Stored<"reservation"> | undefined;
  claim(key: string): Stored<"claim"> | undefined;
  /** All; of a selection: those of it at least. Each is made when its turn comes, so that nobody should have all at once. */
  claims(of?: ClaimSelection): Iterable<Stored<"claim">>;
  /** Those bound to, or held for, a pod of that name, and the one that is called like it. */
  claimsOfPod(namespace: string, name: string): readonly Stored<"claim">[];
  /** Those bound to a pod on that node. Absent: nobody looks for them. */
  claimsOnNode?(node: string): readonly Stored<"claim">[];
  /** All; of a pool: those of it at least. As above. */
  reservations(pool?: string): Iterable<Stored<"reservation">>;
  /** The block of a node that has the address for itself, of whatever pool. Absent: blocks are not followed. */
  blockOwning?(address: Address): Block | undefined;
  /** The same, if the name of the block does not follow from its pool: that was shortened meanwhile, or is gone. Absent: as above. */
  strayBlock?(address: Address): Block | undefined;
  /** All of the pool that nodes have, or that cool. Absent: as above. */
  blocksOf?(pool: string): Iterable<Stored<"block">>;
  /** All, of whatever pool, whose owners have addresses of this pool for themselves, and which. Absent: as above. */
  blocksOver?(pool: Pool, family: Family): Iterable<OwnedPart>;
  /** Who has the address and not from Berth, as far as is known. Absent: nobody looks. */
  occupant?(address: Address): Occupant | undefined;
  /** All of them. */
  occupants?(): ReadonlyMap<Address, Occupant>;
  /** Everything of the pool's space that must not be picked: taken, cooling, excluded, reserved, gateways, in use by others. */
  unpickable(pool: Pool, family: Family): IntervalSet;
  /** Addresses of the pool that claims of the namespace hold. */
  held(pool: string, namespace: string): Readonly<Record<Family, number>>;
  /** Those that cool after claims of the namespace, as long as their records are there: nobody else can have them. */
  cooling(pool: string, namespace: string): Readonly<Record<Family, number>>;
  /** Addresses of the pool that have a reservation: held, or cooling. */
  taken(pool: string): Readonly<Record<Family, number>>;
  /**
   * Whether a reservation that is shown proves that all which were written before it are known: so it is as long as changes
   * come in their order, and not while everything is listed anew. Absent: nobody knows.
   */
  inOrder?(): boolean;
  /** Calls the handler at every change of the kind from here on, after the change; gives what takes it away again. Absent: nobody hears of changes. */
  onChange?<K extends Kind>(kind: K, handler: RecordHandler<K>): () => void;
}

/** The pools that contain the addresses, each once. */
export function poolsContaining(
  view: Pick<RecordReader, "poolOf">,
  addresses: readonly Address[],
): readonly Pool[] {
  return [...new Set(addresses.flatMap((address) => view.poolOf(address) ?? []))];
}

/** The holder of an address, as messages name it. */
export function holderOf(
  view: RecordReader,
  reservation: Reservation,
): { key: string; claim: Claim | undefined } {
  const key = `${reservation.claim.namespace}/${reservation.claim.name}`;
  return { key, claim: view.claim(key)?.record };
}

/** The claim as the view has it; as the store has it where the view has none, or one that is being deleted and may be gone. */
export async function readClaim(
  { view, store }: { readonly view: RecordReader; readonly store: Pick<Store, "get"> },
  key: string,
): Promise<Stored<"claim"> | undefined> {
  const shown = view.claim(key);
  return shown === undefined || shown.record.deleting === true ? await store.get("claim", key) : shown;
}
