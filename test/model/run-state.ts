// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/ip/address.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { type Block, holesOf } from "../../allocator/model/block.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { blockAround } from "../../allocator/pool/blocks.ts";
import { type Pool, rangeOf } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { MemoryRecords, type Written } from "./memory-records.ts";

/** What a live sandbox was given. */
export interface Use {
  readonly key: string;
  readonly nonce: string;
  readonly addresses: readonly Address[];
}

/** Milliseconds since 1970 at which every run begins. */
export const BEGIN = 1_000_000_000;

/** A claim as it was once written. */
interface Version {
  readonly key: string;
  readonly nonce: string;
  readonly listed: string;
  /** Those of its addresses that were not seen reserved for it since, without a mark. */
  readonly unproven: Set<Address>;
  /** Somebody was told that it is his. */
  told: boolean;
}

/**
 * The world of one run: the records, the time, and what only an observer knows, who sees every write as it happens.
 * Whatever breaks a rule is put down in `broken`.
 */
export class RunState {
  readonly records: MemoryRecords;
  readonly pools: readonly Pool[];
  readonly broken: string[] = [];
  readonly versions = new Map<string, Version>(); // claim in words -> what is known of it
  readonly uses = new Map<string, Use>(); // sandbox -> what it was given
  /** What nodes gave out of their blocks, by sandbox. */
  readonly dynamic = new Map<string, { readonly block: Stored<"block">; readonly address: Address }>();
  /** UIDs of blocks that the journal of their node says are given back. */
  readonly givenUp = new Set<string>();
  readonly heldFor = new Map<string, { token: string; until: number }>(); // claim -> the pod that was told that it has it
  readonly retaken = new Map<string, string>(); // address -> the process that took it back while it was cooling
  now = BEGIN;
  /** Processes that are reviews, of pods that nobody has seen. */
  readonly reviewers = new Set<string>();
  /** Whose step it is. */
  acting = "";

  constructor(pools: readonly Pool[], seed: MemoryRecords) {
    this.pools = pools;
    this.records = new MemoryRecords(seed);
    for (const { key, record } of this.records.list("claim")) this.#noteClaim(key, record);
    this.records.listen((written) => this.#watch(written));
  }

  /** Somebody was told that this claim is his. He cannot know that it still is: but once it was, with every address. */
  answered(who: string, { record }: Stored<"claim">): void {
    const version = this.versions.get(inWords(record));
    if (version !== undefined) version.told = true;
    if (version?.unproven.size === 0) return;
    this.broken.push(
      `${who} was answered with ${inWords(record)}, which was never sure of all its addresses`,
    );
  }

  /** A pod that is being admitted was told that the claim is held for it. */
  holdGiven(who: string, stored: Stored<"claim">): void {
    const { token = "", since = this.now } = stored.record.binding ?? {};
    const earlier = this.heldFor.get(stored.key);
    if (earlier !== undefined && earlier.token !== token && this.now < earlier.until)
      this.broken.push(`${who} was given ${stored.key}, which is held for the pod of token ${earlier.token}`);
    this.heldFor.set(stored.key, { token, until: since + HOLD_TIMEOUT_MS });
  }

  /** A sandbox goes up with the claim's addresses. */
  assign(sandbox: string, { key, record }: Stored<"claim">): void {
    this.uses.set(sandbox, { key, nonce: record.nonce, addresses: record.addresses });
  }

  /** Invariant 7: a pod never starts with other addresses than it asked for. */
  mustHave(sandbox: string, asked: readonly Address[]): void {
    const { addresses = [] } = this.uses.get(sandbox) ?? {};
    if (addresses.join() === asked.join()) return;
    this.broken.push(
      `${sandbox} asked for ${asked.join(" and ")}, and went up with ${addresses.join(" and ")}`,
    );
  }

  /** Whether the address is reserved for the nonce and not cooling. */
  holds(address: Address, nonce: string): boolean {
    const found = this.records.get("reservation", address)?.record;
    return found !== undefined && found.nonce === nonce && found.releasedAt === undefined;
  }

  #watch({ kind, key, before, after }: Written): void {
    const [was, is] = [before?.record, after?.record];
    if (kind === "claim") {
      this.#watchClaim(key, was as Claim | undefined, is as Claim | undefined);
    } else if (kind === "reservation") {
      this.#checkCooldown(key, was as Reservation | undefined, is as Reservation | undefined);
      if (is !== undefined) this.#prove(is as Reservation);
    } else if (kind === "block" && is !== undefined) {
      this.#checkHoles(key, was as Block | undefined, is as Block);
    }
  }

  #watchClaim(key: string, was: Claim | undefined, is: Claim | undefined): void {
    const words = was && brokenBinding(was, is);
    if (words !== undefined) this.broken.push(words);
    if (was !== undefined && (is === undefined || is.nonce === "")) this.#checkTakenBack(was);
    if (was !== undefined && this.reviewers.has(this.acting)) this.#checkReview(was, is);
    if (is !== undefined) this.#noteClaim(key, is);
  }

  /**
   * Whoever was told of it relies on it: it goes by a release alone, also one that a person made. Its reserver may withdraw
   * it as long as nobody was: a block may stand against it.
   */
  #checkTakenBack(was: Claim): void {
    if (was.releasing === true || !isReserved(was)) return;
    const { told: reported, unproven } = this.versions.get(inWords(was)) ?? {};
    if (reported !== true && was.addresses.some((address) => this.#isCutIntoBlocks(address))) return;
    const isWhole = was.addresses.every((address) => this.holds(address, was.nonce));
    if (isWhole && unproven?.size === 0)
      this.broken.push(`${inWords(was)} had all its addresses, and was taken back without being released`);
  }

  #isCutIntoBlocks(address: Address): boolean {
    return this.pools.some((pool) => rangeOf(pool, address) && blockAround(pool, address));
  }

  /** What a node may give can only become more, as long as it has the block. */
  #checkHoles(key: string, was: Block | undefined, is: Block): void {
    if (was?.granted !== true) return;
    const before = holesOf(was);
    const isMore = [...holesOf(is)].some(({ first, last }) => before.nextFree(first, last) !== undefined);
    if (isMore || is.granted !== true || is.node !== was.node)
      this.broken.push(`block ${key} of ${was.node} was granted, and was changed under its owner`);
  }

  #noteClaim(key: string, claim: Claim): void {
    if (!isReserved(claim) || claim.addresses.length === 0) return;
    const words = inWords(claim);
    if (!this.versions.has(words)) {
      const { nonce, addresses } = claim;
      const unproven = new Set(addresses);
      this.versions.set(words, { key, nonce, listed: addresses.join(), unproven, told: false });
    }
    for (const address of claim.addresses) {
      const reservation = this.records.get("reservation", address)?.record;
      if (reservation !== undefined) this.#prove(reservation);
    }
  }

  /** A claim that is there, and after that its reservation without a mark: from here nobody collects it. */
  #prove({ address, claim, nonce, marked, releasedAt }: Reservation): void {
    if (marked === true || releasedAt !== undefined) return;
    for (const version of this.versions.values()) {
      if (version.nonce === nonce && version.key === claimKey(claim)) version.unproven.delete(address);
    }
  }

  /** ADR 0007. What it has made itself it may take back, and what was being given back it may finish. */
  #checkReview(was: Claim, is: Claim | undefined): void {
    if (!isReserved(was) || was.releasing === true || was.nonce.startsWith(`${this.acting}~`)) return;
    const said = ({ addresses, identity, retention, request, binding }: Claim) =>
      JSON.stringify([addresses, identity, retention, request, binding]);
    if (is === undefined || is.releasing === true || said(is) !== said(was))
      this.broken.push(`${this.acting} changed ${inWords(was)}, and nobody has seen its pod`);
  }

  #checkCooldown(address: string, was: Reservation | undefined, is: Reservation | undefined): void {
    if (was?.releasedAt !== undefined && is?.releasedAt === undefined) {
      const whose = claimKey(was.claim);
      const cooldownMs = this.pools.find(({ name }) => name === was.pool)?.cooldownMs ?? 0;
      const early = this.now < was.releasedAt + cooldownMs;
      if (early && (is === undefined || claimKey(is.claim) !== whose))
        this.broken.push(`${address}, given back by ${whose}, was let go before its cooldown was over`);
      if (early && is !== undefined) this.retaken.set(address, this.acting);
      return;
    }
    if (is === undefined && this.retaken.get(address) === this.acting)
      this.broken.push(`${this.acting} took ${address} back while it was cooling, and let it go as free`);
    if (is === undefined || is.releasedAt !== undefined) this.retaken.delete(address);
  }
}

export function inWords(claim: Claim): string {
  return `claim ${claimKey(claim)} (${claim.addresses.join(", ")}, nonce ${claim.nonce})`;
}

/** Invariant 3, seen from the record: what a sandbox may be using moves to another node only when it is at rest. */
function brokenBinding(was: Claim, is: Claim | undefined): string | undefined {
  if (isDetached(was)) return undefined;
  const about = `${inWords(was)}, bound to pod ${was.binding?.podName} on ${was.binding?.node},`;
  if (is === undefined) return `${about} was deleted`;
  if (is.releasing === true) return `${about} was released`;
  if (is.nonce !== was.nonce || is.addresses.join() !== was.addresses.join())
    return `${about} was given other addresses: ${inWords(is)}`;
  if (is.binding?.node !== was.binding?.node)
    return `${about} went to pod ${is.binding?.podName ?? "nobody"} on ${is.binding?.node ?? "no node"}`;
  return undefined;
}
