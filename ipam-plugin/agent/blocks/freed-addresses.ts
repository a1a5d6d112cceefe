// SPDX-License-Identifier: Apache-2.0
import { type Address, familyOf, fromNumber, toNumber } from "../../../allocator/ip/address.ts";

/** Freed addresses are remembered for so long at least, in case that their block or its pool is heard of only then. */
const REMEMBERED_MS = 600_000;
/** IPv4 addresses as integers of 32 bits with a sign, and times as milliseconds since this began: neither is an object on the heap. */
const MIDDLE = 2 ** 31;
/** In one go, of as many as have come to an age: all pools are looked at for each, and one comes with each call. */
const LOOKED_AT = 64;

type Packed = number | Address;

/** How long an address cools that a pool has, in ms; 0: no pool has it. Infinity: no pools are known yet. */
export type CooldownOf = (address: Address) => number;

/** When addresses were freed, of any network. An agent may free hundreds of thousands in a day. */
export class FreedAddresses {
  readonly #cooldownOf: CooldownOf;
  readonly #since: number;
  readonly #recent = new Map<Packed, number>(); // address -> when it was freed, in that order
  readonly #older = new Map<number, Map<Packed, number>>(); // cooldown -> those that are older and cool for so long

  constructor(cooldownOf: CooldownOf, now: number) {
    this.#cooldownOf = cooldownOf;
    this.#since = Math.floor(now);
  }

  get size(): number {
    return [...this.#older.values()].reduce((sum, { size }) => sum + size, this.#recent.size);
  }

  get(address: Address): number | undefined {
    const key = packed(address);
    const at = this.#all().reduce<number | undefined>((found, map) => found ?? map.get(key), undefined);
    return at === undefined ? undefined : at + this.#since;
  }

  set(address: Address, at: number): void {
    this.delete(address);
    this.#recent.set(packed(address), Math.floor(at) - this.#since);
  }

  delete(address: Address): void {
    if (this.#recent.size + this.#older.size === 0) return; // as when a journal is read
    const key = packed(address);
    for (const map of this.#all()) if (map.delete(key)) return;
  }

  *entries(): Generator<readonly [Address, number], void, undefined> {
    for (const map of this.#all())
      for (const [key, at] of map) yield [addressOf(key), at + this.#since] as const;
  }

  /** Those that cool no more, and of those that no pool has what is older than `REMEMBERED_MS`; the rest of many with the next calls. */
  forget(time: number): void {
    const now = time - this.#since;
    for (const [cooldownMs, map] of this.#older) {
      this.#forgetIn(map, now, cooldownMs);
      if (map.size === 0) this.#older.delete(cooldownMs);
    }
    this.#forgetIn(this.#recent, now, REMEMBERED_MS);
  }

  /** Of those that are so old. Their pool may have another cooldown than when they were looked at before. */
  #forgetIn(map: Map<Packed, number>, now: number, ageMs: number): void {
    let left = LOOKED_AT;
    for (const [key, at] of map) {
      if (at > now) {
        map.set(key, now); // of a clock that was wrong
        continue;
      }
      if (at > now - ageMs || left-- === 0) return;
      const cooldownMs = this.#cooldownOf(addressOf(key));
      if (cooldownMs === Number.POSITIVE_INFINITY) return;
      map.delete(key);
      if (at > now - cooldownMs) this.#putOlder(cooldownMs, key, at);
    }
  }

  #putOlder(cooldownMs: number, key: Packed, at: number): void {
    const map = this.#older.get(cooldownMs) ?? new Map<Packed, number>();
    this.#older.set(cooldownMs, map.set(key, at));
  }

  #all(): readonly Map<Packed, number>[] {
    return [this.#recent, ...this.#older.values()];
  }
}

function packed(address: Address): Packed {
  return familyOf(address) === "IPv4" ? Number(toNumber(address)) - MIDDLE : address;
}

function addressOf(key: Packed): Address {
  return typeof key === "number" ? fromNumber(BigInt(key + MIDDLE), "IPv4") : key;
}
