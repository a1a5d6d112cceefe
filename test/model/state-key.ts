// SPDX-License-Identifier: Apache-2.0
import { hash } from "node:crypto";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import { slotOf } from "./memory-records.ts";
import { DRAWN, type Observation, type Process } from "./process.ts";
import type { Run } from "./run.ts";
import type { RunState } from "./run-state.ts";

/**
 * What decides about everything that can still happen: the records, and for each process what it has learnt. A process
 * that has ended remembers nothing. What nobody can tell apart is made equal: revisions are told apart only by their
 * order within their key, tokens by their order among those that their process drew, times by how long ago they were.
 */
export function stateKey(run: Run): string {
  const living = run.processes.filter((process) => !process.ended);
  const text = new StateText(run.state, living);
  const histories = run.processes.map((process) => text.ofProcess(process));
  return digest([...text.ofRecords(), ...histories, ...text.ofObserver()]);
}

/** What is stored, whoever has learnt of it: repairs depend on nothing else. */
export function recordsKey(state: RunState): string {
  const text = new StateText(state, []);
  return digest([...text.ofRecords(), ...text.ofObserver()]);
}

/** 128 bits in 16 characters of one byte each: millions of them are kept. */
function digest(parts: readonly string[]): string {
  return hash("md5", parts.join("|"), "buffer").toString("latin1");
}

/** Longer than anything that the product waits for. */
const LONG_AGO_MS = 200_000;

/** The numbers that somebody still knows, from the smallest. */
class Ranks {
  readonly #known = new Map<string, number[]>(); // of what -> its numbers, ascending

  note(what: string, n: number): void {
    const known = this.#known.get(what);
    if (known === undefined) this.#known.set(what, [n]);
    else if (!known.includes(n)) known.push(n);
  }

  of(what: string, n: number): number {
    const known = this.#known.get(what) ?? [];
    return known.reduce((below, other) => (other < n ? below + 1 : below), 0);
  }

  has(what: string, n: number): boolean {
    return this.#known.get(what)?.includes(n) === true;
  }
}

class StateText {
  readonly #state: RunState;
  readonly #revisions = new Ranks(); // by kind/key
  readonly #tokens = new Ranks(); // by the process that drew them

  constructor(state: RunState, living: readonly Process[]) {
    this.#state = state;
    for (const [slot, stored] of state.records.rows()) this.#note(slot, stored);
    for (const { learnt, lastToken } of living) {
      if (lastToken !== undefined) this.#noteToken(lastToken);
      for (const { kind, stored } of learnt) if (kind && stored) this.#note(slotOf(kind, stored.key), stored);
    }
  }

  ofRecords(): string[] {
    return [...this.#state.records.rows()]
      .map(([slot, stored]) => `${slot}=${this.#record(slot, stored)}`)
      .sort();
  }

  ofProcess({ ended, learnt, lastToken }: Process): string {
    if (ended) return ".";
    return `${this.#token(lastToken ?? "")};${learnt.map((observation) => this.#observation(observation)).join(";")}`;
  }

  /** What the onlooker remembers and may hold against a later step. Of a token that nobody knows nobody can speak. */
  ofObserver(): string[] {
    const { versions, uses, heldFor, retaken, dynamic, givenUp, now, broken } = this.#state;
    const known = [...versions.values()].filter(({ nonce }) => this.#isKnown(nonce));
    const said = known
      .map((v) => `${v.key} ${this.#token(v.nonce)} ${v.listed} ${[...v.unproven].join()} ${v.told}`)
      .sort();
    const used = [...uses].map(
      ([sandbox, u]) => `${sandbox} ${u.key} ${this.#token(u.nonce)} ${u.addresses.join()}`,
    );
    const kept = [...heldFor].map(([key, { token, until }]) => `${key} ${token} ${Math.max(0, until - now)}`);
    const given = [...dynamic].map(([sandbox, { block, address }]) => `${sandbox} ${block.uid} ${address}`);
    const again = [...retaken].map((pair) => pair.join(" "));
    const back = [...givenUp].map((uid) => `back ${uid}`);
    const all = [used, kept, again, given, back].flatMap((words) => words.sort());
    return [...said, ...all, ...broken];
  }

  #observation({ text, time, kind, stored }: Observation): string {
    if (kind !== undefined && stored !== undefined)
      return text + this.#record(slotOf(kind, stored.key), stored);
    return time === undefined ? text : `${text}${this.#age(time)}`;
  }

  #record(slot: string, stored: Stored<Kind>): string {
    const { form, times, tokens } = formOf(stored);
    const rank = this.#revisions.of(slot, Number(stored.revision));
    const rest = [...times.map((time) => this.#age(time)), ...tokens.map((token) => this.#token(token))];
    return `${form}@${slot}${rank}(${rest.join()})`;
  }

  #age(time: number): number {
    return Math.min(this.#state.now - time, LONG_AGO_MS);
  }

  #token(token: string): string {
    const [, by, n] = DRAWN.exec(token) ?? [];
    return by === undefined ? token : `${by}~${this.#tokens.of(by, Number(n))}`;
  }

  #isKnown(token: string): boolean {
    const [, by, n] = DRAWN.exec(token) ?? [];
    return by === undefined || this.#tokens.has(by, Number(n));
  }

  #note(slot: string, stored: Stored<Kind>): void {
    this.#revisions.note(slot, Number(stored.revision));
    for (const token of formOf(stored).tokens) this.#noteToken(token);
  }

  #noteToken(token: string): void {
    const [, by, n] = DRAWN.exec(token) ?? [];
    if (by !== undefined) this.#tokens.note(by, Number(n));
  }
}

/** A record without its times and tokens, by a short name, and these. */
interface Form {
  readonly form: number;
  readonly times: readonly number[];
  readonly tokens: readonly string[];
}

/** Greater than any number of a record that is not a time. */
const TIMES_FROM = 500_000_000;
const names = new Map<string, number>(); // JSON without times and tokens -> a short name for it
const forms = new WeakMap<Stored<Kind>, Form>(); // stored record -> its form

function formOf(stored: Stored<Kind>): Form {
  const known = forms.get(stored);
  if (known !== undefined) return known;
  const times: number[] = [];
  const tokens: string[] = [];
  const json = JSON.stringify([stored.record, stored.createdAt], (_, value: unknown) => {
    if (typeof value === "number" && value >= TIMES_FROM) return `time ${times.push(value)}`;
    if (typeof value === "string" && DRAWN.test(value)) return `token ${tokens.push(value)}`;
    return value;
  });
  const name = names.get(json) ?? names.size;
  names.set(json, name);
  const form = { form: name, times, tokens };
  forms.set(stored, form);
  return form;
}
