// SPDX-License-Identifier: Apache-2.0
import type { Stored } from "../../allocator/store/store.ts";
import type { Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";

/** Process -> claim@revision -> when it first came to know it, in happenings. */
type Known = WeakMap<Process, Map<string, number>>;

/**
 * Since when a process knows a claim as it is stored. It may know the same revision in two ways, and decide by either: it
 * reads it, or its cache hears of it, or the answer to its own write says it. A decision by the cache may be older than
 * the first read, which somebody else in the process made.
 */
export class ClaimReads {
  readonly #schedule: Schedule;
  readonly #read: Known = new WeakMap();
  readonly #told: Known = new WeakMap();
  readonly #copies = new WeakSet<Stored<"claim">>(); // what reads gave
  #seen: Stored<"claim"> | undefined;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** What the process has read: a copy, by which a write shows that it rests on the read. */
  read(process: Process, stored: Stored<"claim">): Stored<"claim"> {
    const copy = { ...stored };
    this.#copies.add(copy);
    this.#note(this.#read, process, stored);
    return copy;
  }

  /** It heard of it in a watch, or in the answer to a write. */
  told(process: Process, stored: Stored<"claim">): void {
    this.#note(this.#told, process, stored);
  }

  /** A write which rests on what the process has seen. */
  restingOn<T>(seen: Stored<"claim">, write: () => T): T {
    this.#seen = seen;
    try {
      return write();
    } finally {
      this.#seen = undefined;
    }
  }

  /** When the process came to know what its present write rests on; 0: nobody can tell. */
  since(process: Process | undefined, stored: Stored<"claim">): number {
    const isRead = this.#seen === undefined || this.#copies.has(this.#seen);
    const known = process && (isRead ? this.#read : this.#told).get(process);
    return known?.get(idOf(stored)) ?? 0;
  }

  #note(known: Known, process: Process, stored: Stored<"claim">): void {
    const of = known.get(process) ?? new Map<string, number>();
    known.set(process, of);
    if (!of.has(idOf(stored))) of.set(idOf(stored), this.#schedule.count);
  }
}

function idOf({ key, revision }: Stored<"claim">): string {
  return `${key}@${revision}`;
}
