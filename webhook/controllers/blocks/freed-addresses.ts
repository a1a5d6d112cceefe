// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../../allocator/base/ports.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { type Address, type Family, familyOf } from "../../../allocator/ip/address.ts";
import { isReturned } from "../../../allocator/model/block.ts";
import { parseAddresses } from "../../../allocator/model/interfaces.ts";
import { blockLength, blocksAhead } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";

type View = Pick<RecordCache, "poolOf" | "blockOwning">;
type Seen = Pick<ObservedPod, "addresses" | "ended"> | undefined;

/** More do not cool at once where it would matter; those that were freed first are forgotten. */
const MOST = 10_000;

/**
 * Addresses that pods had a moment ago, of pools that nodes have nothing ahead of: a node's agent does not say what cools there, and where
 * it has no other address the next pod would wait for as long. By what this process has seen of pods; it only decides who gets a block
 * more.
 */
export class FreedAddresses {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #view: View;
  readonly #freed = new Map<Address, number>(); // address -> since when its pod has it no more, in that order

  constructor(clock: Pick<Clock, "monotonic">, view: View) {
    this.#clock = clock;
    this.#view = view;
  }

  /** To be told of every change of a pod. */
  see(now: Seen, before: Seen): void {
    if (now?.addresses === before?.addresses && now?.ended === before?.ended) return;
    const has = new Set(addressesOf(now));
    for (const address of has) this.#freed.delete(address);
    // of one that ends soon both may be told at once
    const last = before?.ended === false ? readAddresses(now) : [];
    for (const address of [...addressesOf(before), ...last]) {
      const pool = this.#view.poolOf(address);
      if (has.has(address) || pool === undefined || !isWithoutSpare(pool, familyOf(address))) continue;
      this.#freed.delete(address);
      this.#freed.set(address, this.#clock.monotonic());
    }
    for (const address of this.#freed.keys()) {
      if (this.#freed.size <= MOST) break;
      this.#freed.delete(address);
    }
  }

  /** The pool, family and node of each that cools, as long as it is in a block of the node's. */
  *cooling(): Generator<readonly [string, Family, string], void, undefined> {
    const now = this.#clock.monotonic();
    for (const [address, at] of this.#freed) {
      const [pool, family] = [this.#view.poolOf(address), familyOf(address)];
      if (pool === undefined || !isWithoutSpare(pool, family) || now - at >= pool.cooldownMs) {
        this.#freed.delete(address);
        continue;
      }
      const block = this.#view.blockOwning(address);
      if (block?.pool !== pool.name || block.releasedAt !== undefined || isReturned(block)) continue;
      yield [pool.name, family, block.node];
    }
  }
}

function isWithoutSpare(pool: Pool, family: Family): boolean {
  return blockLength(pool, family) !== undefined && blocksAhead(pool) === 0;
}

/** Those of an ended pod go with its sandbox. */
function addressesOf(pod: Seen): readonly Address[] {
  return pod?.ended ? [] : readAddresses(pod);
}

function readAddresses(pod: Seen): readonly Address[] {
  return pod?.addresses === undefined ? [] : parseAddresses(pod.addresses.split(",")).addresses;
}
