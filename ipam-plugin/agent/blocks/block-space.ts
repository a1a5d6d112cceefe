// SPDX-License-Identifier: Apache-2.0
import type { Cidr, Family } from "../../../allocator/ip/address.ts";
import type { IntervalSet } from "../../../allocator/ip/interval-set.ts";
import { contains, fullInterval, type Interval, sizeOf, without } from "../../../allocator/ip/ip-range.ts";
import { holesOf, networkOfBlock } from "../../../allocator/model/block.ts";
import type { OwnedBlock } from "../journal/owned-blocks.ts";

/**
 * The addresses of one block of this node. What is not to be given (holes, addresses in use, those that cool) is kept as
 * runs, so that the next free address costs the same in a block of 4 and of 4,096.
 */
export class BlockSpace {
  #block: OwnedBlock;
  readonly network: Cidr;
  readonly #whole: Interval;
  readonly #holes: IntervalSet;
  readonly #closed: IntervalSet;
  readonly #used = new Set<bigint>();
  readonly #cooling = new Map<bigint, number>(); // address -> when it was freed, in that order unless #unsorted
  #unsorted = false;
  /** None that cools was freed later. */
  #latest = 0;
  #next: bigint;
  #given = 0;

  constructor(block: OwnedBlock) {
    const network = networkOfBlock(block.cidr);
    this.#block = block;
    this.network = network;
    this.#whole = fullInterval(network);
    this.#holes = holesOf(block);
    this.#closed = holesOf(block);
    this.#next = this.#whole.first;
  }

  get block(): OwnedBlock {
    return this.#block;
  }

  /** The same block with more holes: what was given back one by one. False: it has fewer. */
  withdraw(block: OwnedBlock): boolean {
    const holes = holesOf(block);
    if (without([...this.#holes], holes).length > 0) return false;
    for (const interval of holes) {
      this.#holes.addInterval(interval);
      this.#closed.addInterval(interval);
    }
    for (const n of [...this.#used]) if (this.#holes.has(n)) this.#used.delete(n);
    for (const n of [...this.#cooling.keys()]) if (this.#holes.has(n)) this.#cooling.delete(n);
    this.#block = block;
    return true;
  }

  get family(): Family {
    return this.network.family;
  }

  /** How many addresses the node may give. */
  get usable(): number {
    return Number(sizeOf(this.#whole) - this.#holes.size);
  }

  /** How often an address of it was given since it is known. */
  get given(): number {
    return this.#given;
  }

  /** How many of them sandboxes have. */
  get used(): number {
    return this.#used.size;
  }

  has(n: bigint): boolean {
    return contains(this.#whole, n);
  }

  /** From now on a sandbox has the address. */
  hold(n: bigint): void {
    this.#cooling.delete(n);
    if (this.#holes.has(n)) return;
    this.#used.add(n);
    this.#closed.add(n);
    this.#next = n + 1n;
    this.#given++;
  }

  /** No sandbox has the address any more; it cools, from `at` on. */
  free(n: bigint, at: number): void {
    if (this.#holes.has(n)) return;
    this.#used.delete(n);
    this.#cooling.delete(n);
    this.#cooling.set(n, at);
    if (at < this.#latest) this.#unsorted = true;
    else this.#latest = at;
    this.#closed.add(n);
  }

  /** Opens what has cooled for so long. A time in the future, of a clock that was wrong, counts as now (ADR 0014). */
  endCooling(now: number, cooldownMs: number): void {
    if (this.#unsorted || this.#latest > now) this.#sortCooling(now);
    for (const [n, at] of this.#cooling) {
      if (at > now - cooldownMs) return;
      this.#cooling.delete(n);
      this.#closed.remove(n);
    }
  }

  #sortCooling(now: number): void {
    const times = [...this.#cooling].map(([n, at]) => [n, Math.min(at, now)] as const);
    this.#cooling.clear();
    for (const [n, at] of times.sort(([, a], [, b]) => a - b)) this.#cooling.set(n, at);
    this.#unsorted = false;
    this.#latest = now;
  }

  /** How many addresses cool, and when the first of them was freed. */
  get cooling(): { readonly count: number; readonly since: number | undefined } {
    return { count: this.#cooling.size, since: this.#cooling.values().next().value };
  }

  /** How many addresses may be given at this moment. */
  get available(): number {
    return Number(sizeOf(this.#whole) - this.#closed.size);
  }

  isFree(n: bigint): boolean {
    return this.has(n) && !this.#closed.has(n);
  }

  /** So many addresses that may be given at this moment, or fewer: the last ones. Takes nothing. */
  someFree(count: number): readonly bigint[] {
    const found: bigint[] = [];
    let from: bigint | undefined = this.#whole.last;
    while (found.length < count) {
      from = from < this.#whole.first ? undefined : this.#closed.previousFree(from, this.#whole.first);
      if (from === undefined) return found;
      found.push(from);
      from -= 1n;
    }
    return found;
  }

  /** The next address that may be given, behind the last one that was. Takes nothing. */
  nextFree(): bigint | undefined {
    const { first, last } = this.#whole;
    const behind = this.#next <= last ? this.#closed.nextFree(this.#next, last) : undefined;
    return behind ?? this.#closed.nextFree(first, last);
  }
}
