// SPDX-License-Identifier: Apache-2.0
import { isOwnedIn } from "../../allocator/cache/block-index.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { Block } from "../../allocator/model/block.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { MemoryRecords, Written } from "../model/memory-records.ts";

interface State {
  readonly words: string;
  /** Addresses that were not seen reserved for it since it lists them. */
  readonly unproven: Set<string>;
}

/**
 * Which claims may be relied on. A reserver writes its claim and looks then whether the reservations are still there:
 * until they were, without a mark, beside the claim and in no node's block, the claim is a try, and nobody may have been told of
 * it. When the block goes that stood against it, a pod may be told, once the claim was written again: the reserver may have read
 * the block, and takes its try back if it was not (ADR 0020).
 */
export class Doubt {
  readonly #records: MemoryRecords;
  readonly #states = new Map<string, State>(); // namespace/name -> what is proven of the claim that is there
  /** Claims and addresses that once could be relied on. */
  readonly #proven = new Set<string>();

  /** Claims and the nonces that they ever had: what is held beside one may outlast it. */
  readonly #nonces = new Set<string>();

  constructor(auditInput: MemoryRecords) {
    this.#records = auditInput;
  }

  /** The claim as it is stored now can rely on all its addresses. */
  isSure({ key, record }: { readonly key: string; readonly record: Claim }): boolean {
    const state = this.#states.get(key);
    return state !== undefined && state.words === wordsOf(record) && state.unproven.size === 0;
  }

  /** The claim could at some time rely on having these addresses: who was told so was told the truth. */
  wasSure(key: string, addresses: readonly string[]): boolean {
    return addresses.every((address) => this.#proven.has(`${key} ${address}`));
  }

  note({ kind, key, before, after }: Written): void {
    if (kind === "claim") this.#noteClaim(key, after?.record as Claim | undefined);
    else if (kind === "reservation" && after !== undefined) this.#prove(after.record as Reservation);
    else if (kind === "block")
      this.#noteBlock((before ?? after)?.record as Block | undefined, after?.record as Block | undefined);
  }

  /**
   * Of the addresses of this block alone: what becomes of it says nothing of a try that another one stood against. A hole that
   * is made before the block is granted is its reserver's; one that the grant makes is not, and the reserver may know of none.
   */
  #noteBlock(block: Block | undefined, now: Block | undefined): void {
    if (block === undefined) return;
    const isReservers = now !== undefined && now.granted !== true;
    for (const { record } of this.#records.list("reservation")) {
      if (!isOwnedIn({ ...block, holes: [] }, record.address)) continue;
      if (isReservers) this.#prove(record);
      else this.#believe(record);
    }
  }

  /** A node has the address in a block, or is about to: ADR 0020. */
  #isNodes(address: Address): boolean {
    return this.#records.list("block").some(({ record }) => isOwnedIn(record, address));
  }

  #noteClaim(key: string, claim: Claim | undefined): void {
    if (claim === undefined || !isReserved(claim)) {
      this.#states.delete(key);
      return;
    }
    this.#nonces.add(`${key} ${claim.nonce}`);
    const words = wordsOf(claim);
    const state = this.#states.get(key);
    if (state?.words !== words) this.#states.set(key, { words, unproven: new Set(claim.addresses) });
    else if (state.unproven.size === 0) return;
    for (const address of claim.addresses) {
      const reservation = this.#records.get("reservation", address)?.record;
      if (reservation !== undefined) this.#prove(reservation);
    }
  }

  #prove(reservation: Reservation): void {
    if (!this.#believe(reservation)) return;
    const { address, claim, nonce } = reservation;
    const there = this.#records.get("claim", claimKey(claim))?.record;
    if (there?.nonce !== nonce || !there.addresses.includes(address)) return;
    this.#states.get(claimKey(claim))?.unproven.delete(address);
  }

  /** It stands, beside the claim or held for a pod that is told so. */
  #believe({ address, claim, nonce, marked, releasedAt }: Reservation): boolean {
    if (marked === true || releasedAt !== undefined || this.#isNodes(address)) return false;
    if (!this.#nonces.has(`${claimKey(claim)} ${nonce}`)) return false;
    this.#proven.add(`${claimKey(claim)} ${address}`);
    return true;
  }
}

function wordsOf(claim: Claim): string {
  return `${claim.nonce} ${claim.addresses.join(" ")}`;
}
