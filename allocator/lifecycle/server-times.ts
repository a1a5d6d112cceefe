// SPDX-License-Identifier: Apache-2.0

import type { Claim } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";

/** With so many it is looked which of them nobody asks for any more: their records are gone, or were changed. */
const MANY = 10_000;
/** Of a record that is there somebody asks in each pass over everything, every five minutes (`allocator/gc/unsettled.ts`). */
const UNASKED_MS = 600_000;

interface Met {
  readonly stamp: number;
  readonly at: number;
  /** When it was asked for last. */
  asked: number;
}

/**
 * Times in records, as this process may go by them. One that is ahead of its clock was written by a clock that was wrong
 * (or is read by one): its term runs from when it was met first, and not for as long as the clocks differ.
 */
export class ServerTimes {
  readonly #met = new Map<string, Met>(); // what it is of -> when it was met
  #many = MANY;

  /** The claim by times that are past: one that is ahead would keep a hold, or what is retained, for as long as it is. */
  met({ key, record, createdAt, ...stored }: Stored<"claim">, now: number): Stored<"claim"> {
    const past = (field: string, stamp: number) => this.past(`${key} ${field}`, stamp, now);
    const { admittedAt, binding, retained } = record;
    const times: Partial<Claim> = {
      ...(admittedAt !== undefined && { admittedAt: past("admittedAt", admittedAt) }),
      ...(binding && { binding: { ...binding, since: past("binding", binding.since) } }),
      ...(retained && { retained: { ...retained, since: past("retained", retained.since) } }),
    };
    return { ...stored, key, record: { ...record, ...times }, createdAt: past("createdAt", createdAt) };
  }

  /** `stamp`, or when it was first met if it is in the future. `of` names the record and the field. */
  past(of: string, stamp: number, now: number): number {
    const met = this.#met.get(of);
    if (met?.stamp === stamp) {
      met.asked = now;
      return Math.min(stamp, met.at);
    }
    if (stamp <= now) {
      if (met !== undefined) this.#met.delete(of);
      return stamp;
    }
    if (this.#met.size >= this.#many) this.#forgetUnasked(now);
    this.#met.set(of, { stamp, at: now, asked: now });
    return now;
  }

  /** None of a record that is there, however many those are: it would begin anew with every pass, and its term never end. */
  #forgetUnasked(now: number): void {
    for (const [of, { asked }] of this.#met) if (now - asked >= UNASKED_MS) this.#met.delete(of);
    this.#many = Math.max(MANY, 2 * this.#met.size);
  }
}
