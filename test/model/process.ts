// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import { inShort } from "./record-words.ts";

/** One thing that a process has learnt and that may decide what it does next. */
export interface Observation {
  readonly text: string;
  readonly question?: string;
  /** The time that it read. */
  readonly time?: number;
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

/** Most steps are never told of. */
type Telling = () => Said;

interface Operation<T> {
  readonly call: () => string;
  readonly perform: () => T;
  readonly learn: (result: T) => Observation;
}

/**
 * One process of a run: real code that stands still at every call of the store until it is told to take the step.
 * A process that is never told again has crashed.
 */
export class Process {
  readonly name: string;
  /** Everything that its next step depends on, in order: answers of the store, time as it read it, what its view showed. */
  readonly learnt: Observation[] = [];
  readonly #forgets: boolean;
  readonly #act: () => Promise<void>;
  #waiting: (() => Telling) | undefined;
  #idle = Promise.withResolvers<void>();
  #ended = false;
  #error: unknown;
  #tokens = 0;

  constructor(actor: { readonly name: string; readonly forgets?: boolean }, act: () => Promise<void>) {
    this.name = actor.name;
    this.#forgets = actor.forgets === true;
    this.#act = act;
    this.#waiting = () => this.#start();
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** What it threw. */
  get error(): unknown {
    return this.#error;
  }

  /** Takes the step it stands before, and runs on to the next one. */
  async step(): Promise<Telling> {
    const waiting = this.#waiting;
    if (waiting === undefined) throw new BerthError("INTERNAL", `${this.name} has no step to take`);
    this.#waiting = undefined;
    this.#idle = Promise.withResolvers();
    const telling = waiting();
    await this.#idle.promise;
    return telling;
  }

  /** Stands still until told to go on; `perform` then happens at once. */
  turn<T>(operation: Operation<T>): Promise<T> {
    return new Promise((resolve) => {
      this.#waiting = () => {
        const result = operation.perform();
        const observation = operation.learn(result);
        this.learn(observation);
        resolve(result);
        return () => ({ process: this.name, call: operation.call(), answer: describe(observation) });
      };
      this.#idle.resolve();
    });
  }

  learn(observation: Observation): void {
    this.learnt.push(observation);
  }

  /** Time as it reads it. */
  noteTime(now: number): number {
    this.learnt.push({ text: "time", time: now });
    return now;
  }

  /** The same in every run, and nobody else's. */
  token(): string {
    return drawn(this.name, ++this.#tokens);
  }

  /** The last token that it drew, which it may still mean to use. */
  get lastToken(): string | undefined {
    return this.#tokens === 0 ? undefined : drawn(this.name, this.#tokens);
  }

  /**
   * It plans: when that is how it begins anew, it remembers how it began, up to the first claim that it read, and what
   * came with and after the last one.
   */
  plans(): void {
    if (!this.#forgets) return;
    const ofClaims = (observation: Observation) => observation.question === "get claim";
    const first = this.learnt.findIndex(ofClaims);
    const last = this.learnt.findLastIndex(ofClaims);
    if (first >= 0 && last > first) this.learnt.splice(first + 1, last - first - 1);
  }

  #start(): Telling {
    this.learnt.push({ text: "begun" });
    void this.#act()
      .catch((error: unknown) => {
        this.#error = error;
      })
      .then(() => {
        this.#ended = true;
        this.#idle.resolve();
      });
    return () => ({ process: this.name, call: "starts", answer: "" });
  }
}

/** How a token looks: who drew it, and the how-manieth it was. */
export const DRAWN: RegExp = /^(.*)~(\d+)$/;

function drawn(by: string, count: number): string {
  return `${by}~${count}`;
}

function describe({ text, kind, stored }: Observation): string {
  return kind === undefined || stored === undefined
    ? text
    : `${text} ${inShort(kind, stored.record)} (r${stored.revision})`;
}

/** The words of what it threw, undefined when it was nothing or an expected end: records kept changing under it. */
export function defectOf(process: Process): string | undefined {
  const { error } = process;
  if (error === undefined || (error instanceof BerthError && error.code === "REVISION_CONFLICT"))
    return undefined;
  return `${process.name} failed: ${messageOf(error)}`;
}
