// SPDX-License-Identifier: Apache-2.0
import type { ClaimStatus } from "../../allocator/claim.ts";
import { BerthError, messageOf } from "../../allocator/errors.ts";
import type { Clock, Random } from "../../allocator/ports.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../../allocator/store/store.ts";
import type { Books } from "./books.ts";

/** One thing that a process has learnt and that may decide what it does next. */
export interface Glimpse {
  readonly text: string;
  readonly question?: string;
  /** The record that it saw. */
  readonly kind?: Kind;
  readonly stored?: Stored<Kind>;
}

/** One step as people read it. */
export interface Said {
  readonly process: string;
  readonly call: string;
  readonly answer: string;
}

interface Deed<T> {
  readonly call: () => string;
  readonly perform: () => T;
  readonly learn: (result: T) => Glimpse;
  /** Sleeps are counted: who has slept his fill is not woken again. */
  readonly sleep?: boolean;
}

interface Waiting {
  readonly sleep: boolean;
  run(): Said;
}

/**
 * One process of a run: real code that stands still at every call of the store until it is told to take the step.
 * A process that is never told again has crashed.
 */
export class Process {
  readonly name: string;
  /** Everything that its next step depends on, in order: answers of the store, time as it read it, what its view showed. */
  readonly learnt: Glimpse[] = [];
  readonly #forgets: boolean;
  readonly #act: () => Promise<void>;
  #waiting: Waiting | undefined;
  #idle = Promise.withResolvers<void>();
  #ended = false;
  #error: unknown;
  #sleeps = 0;
  #tokens = 0;

  constructor(actor: { readonly name: string; readonly forgets?: boolean }, act: () => Promise<void>) {
    this.name = actor.name;
    this.#forgets = actor.forgets === true;
    this.#act = act;
    this.#waiting = { sleep: false, run: () => this.#start() };
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** What it threw. */
  get error(): unknown {
    return this.#error;
  }

  get sleeps(): number {
    return this.#sleeps;
  }

  get sleeping(): boolean {
    return this.#waiting?.sleep === true;
  }

  /** Takes the step it stands before, and runs on to the next one. */
  async step(): Promise<Said> {
    const waiting = this.#waiting;
    if (waiting === undefined) throw new BerthError("INTERNAL", `${this.name} has no step to take`);
    this.#waiting = undefined;
    this.#idle = Promise.withResolvers();
    const said = waiting.run();
    await this.#idle.promise;
    return said;
  }

  /** Stands still until told to go on; `perform` then happens at once. */
  turn<T>(deed: Deed<T>): Promise<T> {
    return new Promise((resolve) => {
      this.#waiting = {
        sleep: deed.sleep === true,
        run: () => {
          const result = deed.perform();
          const glimpse = deed.learn(result);
          if (deed.sleep === true) this.#sleeps++;
          this.learnt.push(glimpse);
          resolve(result);
          return { process: this.name, call: deed.call(), answer: describe(glimpse) };
        },
      };
      this.#idle.resolve();
    });
  }

  /** Time as it reads it. */
  noteTime(now: number): number {
    this.learnt.push({ text: `t${now}` });
    return now;
  }

  /** The same in every run, and nobody else's. */
  token(): string {
    if (this.#forgets) this.#forget();
    return `${this.name}.${++this.#tokens}`;
  }

  /** Keeps how it began, up to the first claim that it read, and what came with and after the last one. */
  #forget(): void {
    const ofClaims = (glimpse: Glimpse) => glimpse.question === "get claim";
    const first = this.learnt.findIndex(ofClaims);
    const last = this.learnt.findLastIndex(ofClaims);
    if (first >= 0 && last > first) this.learnt.splice(first + 1, last - first - 1);
  }

  #start(): Said {
    this.learnt.push({ text: "begun" });
    void this.#act()
      .catch((error: unknown) => {
        this.#error = error;
      })
      .then(() => {
        this.#ended = true;
        this.#idle.resolve();
      });
    return { process: this.name, call: "starts", answer: "" };
  }
}

function describe({ text, stored }: Glimpse): string {
  return stored === undefined ? text : `${text} ${JSON.stringify(stored.record)} r${stored.revision}`;
}

/** The store as one process has it: every verb is one step. */
export class ProcessStore implements Store {
  readonly #process: Process;
  readonly #books: Books;
  readonly #now: () => number;

  constructor(process: Process, books: Books, now: () => number) {
    this.#process = process;
    this.#books = books;
    this.#now = now;
  }

  create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    return this.#process.turn({
      call: () => `create ${kind} ${keyOf(kind, record)} ${JSON.stringify(record)}`,
      perform: () => this.#books.create(kind, record, this.#now()),
      learn: (result) => ({ text: result.kind, kind, stored: result.stored }),
    });
  }

  get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return this.#process.turn({
      call: () => `get ${kind} ${key}`,
      perform: () => this.#books.get(kind, key),
      learn: (stored) => ({ text: "none", question: `get ${kind}`, ...(stored && { text: "found", kind, stored }) }),
    });
  }

  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#process.turn({
      call: () => `replace ${kind} ${seen.key} r${seen.revision} by ${JSON.stringify(next)}`,
      perform: () => this.#books.replace(kind, seen, next),
      learn: (result) => replaced(kind, result),
    });
  }

  report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#process.turn({
      call: () => `report ${seen.key} r${seen.revision} ${JSON.stringify(status)}`,
      perform: () => this.#books.report(seen, status),
      learn: (result) => replaced("claim", result),
    });
  }

  remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#process.turn({
      call: () => `remove ${kind} ${seen.key} r${seen.revision}`,
      perform: () => this.#books.remove(kind, seen),
      learn: (result) => ({ text: result.kind }),
    });
  }

  async *list<K extends Kind>(kind: K): AsyncGenerator<Stored<K>, void, void> {
    yield* await this.#process.turn({
      call: () => `list ${kind}`,
      perform: () => this.#books.list(kind),
      learn: (all) => ({ text: `list ${all.map(({ key, revision }) => `${key} r${revision}`).join(" ")}` }),
    });
  }

  watch<K extends Kind>(kind: K): AsyncIterable<Change<K>> {
    throw new BerthError("INTERNAL", `watch of ${kind} is not explored; give the process a view instead`);
  }

  async close(): Promise<void> {}
}

function replaced(kind: Kind, result: ReplaceResult<Kind>): Glimpse {
  return result.kind === "replaced" ? { text: "replaced", kind, stored: result.stored } : { text: "conflict" };
}

/** Time as one process has it. Sleeping is a step, and may take longer than asked: `pass` moves the time for all. */
export function processClock(process: Process, now: () => number, pass: (ms: number) => void): Clock {
  return {
    now: () => process.noteTime(now()),
    monotonic: () => process.noteTime(now()),
    sleep: (ms) =>
      process.turn({
        call: () => `sleep ${ms} ms`,
        perform: () => pass(ms),
        learn: () => ({ text: "woken" }),
        sleep: true,
      }),
  };
}

export function processRandom(process: Process): Random {
  return { token: () => process.token(), fraction: () => 0.5 };
}

/** The words of what it threw, undefined when it was nothing or an expected end: records kept changing under it. */
export function defectOf(process: Process): string | undefined {
  const { error } = process;
  if (error === undefined || (error instanceof BerthError && error.code === "REVISION_CONFLICT")) return undefined;
  return `${process.name} failed: ${messageOf(error)}`;
}
