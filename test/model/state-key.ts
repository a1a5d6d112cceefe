// SPDX-License-Identifier: Apache-2.0
import { hash } from "node:crypto";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import { slotOf } from "./books.ts";
import type { Harbour } from "./harbour.ts";
import type { Process } from "./process.ts";
import type { Run } from "./run.ts";

/**
 * What decides about everything that can still happen: the books, the time, and for each process what it has learnt.
 * A process that has ended remembers nothing. Revisions are told apart only by their order within their key, because
 * nobody asks more of them than whether they are the same.
 */
export function stateKey(run: Run): string {
  const { harbour, processes } = run;
  const ranks = new Ranks();
  for (const [slot, stored] of harbour.books.rows()) ranks.note(slot, stored);
  const living = processes.filter((process) => !process.ended);
  for (const { learnt } of living) {
    for (const { kind, stored } of learnt) if (kind && stored) ranks.note(slotOf(kind, stored.key), stored);
  }
  const rows = [...harbour.books.rows()]
    .map(([slot, stored]) => `${slot}=${contentOf(stored)}@${ranks.of(slot, stored)}`)
    .sort();
  const parts = [String(harbour.now), ...rows, ...processes.map((p) => historyOf(p, ranks)), ...known(harbour)];
  return digest(parts);
}

/** What is stored, whoever learnt of it: repairs depend on nothing else. */
export function booksKey(harbour: Harbour): string {
  const rows = [...harbour.books.rows()].map(([slot, stored]) => `${slot}=${contentOf(stored)}`).sort();
  return digest([String(harbour.now), ...rows, ...known(harbour)]);
}

/** 128 bits in 16 characters of one byte each: millions of them are kept. */
function digest(parts: readonly string[]): string {
  return hash("md5", parts.join("|"), "buffer").toString("latin1");
}

/** Numbers the revisions of a key that anybody still knows, in the order in which they were written. */
class Ranks {
  readonly #revisions = new Map<string, Set<number>>(); // kind/key -> revisions
  readonly #sorted = new Map<string, readonly number[]>(); // kind/key -> revisions, ascending

  note(slot: string, { revision }: Stored<Kind>): void {
    const known = this.#revisions.get(slot);
    if (known === undefined) this.#revisions.set(slot, new Set([Number(revision)]));
    else known.add(Number(revision));
  }

  of(slot: string, { revision }: Stored<Kind>): number {
    let sorted = this.#sorted.get(slot);
    if (sorted === undefined) {
      sorted = [...(this.#revisions.get(slot) ?? [])].sort((a, b) => a - b);
      this.#sorted.set(slot, sorted);
    }
    return sorted.indexOf(Number(revision));
  }
}

function historyOf({ ended, learnt }: Process, ranks: Ranks): string {
  if (ended) return ".";
  return learnt
    .map(({ text, kind, stored }) =>
      kind === undefined || stored === undefined
        ? text
        : `${text}${contentOf(stored)}@${slotOf(kind, stored.key)}${ranks.of(slotOf(kind, stored.key), stored)}`,
    )
    .join(";");
}

/** What the onlooker remembers and may hold against a later step. */
function known({ doubtful, sure, uses, promises, retaken, now }: Harbour): string[] {
  return [
    [...sure].sort().join(),
    [...doubtful].map(([words, { unproven }]) => `${words} ${[...unproven].join()}`).join(),
    JSON.stringify([...uses]),
    JSON.stringify([...promises].filter(([, { until }]) => until > now)),
    JSON.stringify([...retaken]),
  ];
}

const numbers = new Map<string, number>(); // JSON of a record and its age -> a short name for it
const names = new WeakMap<Stored<Kind>, number>(); // stored record -> the same

function contentOf(stored: Stored<Kind>): number {
  let number = names.get(stored);
  if (number === undefined) {
    const json = JSON.stringify([stored.record, stored.createdAt]);
    number = numbers.get(json) ?? numbers.size;
    numbers.set(json, number);
    names.set(stored, number);
  }
  return number;
}
