// SPDX-License-Identifier: Apache-2.0
import type { Context } from "../../allocator/context.ts";
import { isRefusal } from "../../allocator/errors.ts";
import { KeyedMutex } from "../../allocator/mutex.ts";
import { type Pool, type PoolRecord, parsePool } from "../../allocator/pool.ts";
import { silent } from "../../allocator/ports.ts";
import type { Kind, Records, Store } from "../../allocator/store/store.ts";
import { Books } from "./books.ts";
import { BEGIN, Harbour } from "./harbour.ts";
import { firstBroken } from "./invariants.ts";
import { Process, ProcessStore, processClock, processRandom, type Said } from "./process.ts";
import { booksFor, type Lags, LIVE, Sight } from "./sight.ts";

/** A record that is there when the run begins. */
export type Seed = { readonly [K in Kind]: { readonly kind: K; readonly record: Records[K] } }[Kind];

/** What an actor has before him: the product's own context, and the world to tell what he was given. */
export interface Desk {
  readonly name: string;
  readonly context: Context;
  readonly harbour: Harbour;
  /** A step in which nothing happens but that time goes by, for everybody. */
  wait(ms: number): Promise<void>;
}

/** One process of a scenario. It has a context of its own, as a replica has. */
export interface Actor {
  readonly name: string;
  readonly act: (desk: Desk) => Promise<void>;
  /** How far its view lags; absent: not at all. */
  readonly lags?: Lags;
  /**
   * Its act is one call of `reserve`, or of `lendSlot` for a single slot: when it draws a nonce, it has begun anew from
   * the claim as it has just read it, and remembers nothing else but how it began.
   */
  readonly forgets?: boolean;
  /** Puts something between it and the store, to show that the checker finds what that breaks. */
  readonly store?: (store: Store) => Store;
}

/** Processes that meet over some records. Everything they can do in any order is explored. */
export interface Scenario {
  readonly title: string;
  readonly pools: readonly PoolRecord[];
  readonly seed?: readonly Seed[];
  readonly actors: readonly Actor[];
  /** How often one process may sleep before it is left out; 2 if absent. */
  readonly sleeps?: number;
}

const SLEEPS = 2;
/** A sleeper may wake late, and late enough for a reservation to look broken off: shorter sleeps only repeat a round. */
const OVERSLEPT_MS = 1_500;
/** The seed is that old when the run begins. */
const SEED_AGE_MS = 600_000;

/** What all runs of a scenario begin with. */
export interface Stage {
  readonly scenario: Scenario;
  readonly pools: readonly Pool[];
  readonly seed: Books;
}

export function stageOf(scenario: Scenario): Stage {
  const pools = scenario.pools.map((record) => {
    const pool = parsePool(record);
    if (isRefusal(pool)) throw new TypeError(`scenario "${scenario.title}": ${pool.message}`);
    return pool;
  });
  const seed = new Books();
  for (const { kind, record } of scenario.seed ?? []) seed.create(kind, record, BEGIN - SEED_AGE_MS);
  return { scenario, pools, seed };
}

/** One run of a scenario's processes, stepped from outside. */
export class Run {
  readonly harbour: Harbour;
  readonly processes: readonly Process[];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.harbour = new Harbour(stage.pools, stage.seed);
    this.processes = stage.scenario.actors.map((actor) => this.#processOf(actor));
  }

  /** The processes that can take a step, by their place in the scenario. */
  enabled(): number[] {
    return [...this.processes.keys()].filter((i) => {
      const process = this.processes[i];
      return process !== undefined && !process.ended && !this.#sleptOut(process);
    });
  }

  /** How many processes were left out because they had slept too often. */
  get cut(): number {
    return this.processes.filter((process) => !process.ended && this.#sleptOut(process)).length;
  }

  async step(i: number): Promise<Said> {
    const process = this.processes[i];
    if (process === undefined) throw new RangeError(`there is no process ${i}`);
    this.harbour.acting = process.name;
    return await process.step();
  }

  /** The words for what is wrong now. */
  broken(): string | undefined {
    return firstBroken(this.harbour, this.processes);
  }

  #sleptOut(process: Process): boolean {
    return process.sleeping && process.sleeps >= (this.#stage.scenario.sleeps ?? SLEEPS);
  }

  #processOf(actor: Actor): Process {
    const process: Process = new Process(actor, () => actor.act(this.#deskOf(actor, process)));
    return process;
  }

  #deskOf(actor: Actor, process: Process): Desk {
    const { harbour } = this;
    const now = () => harbour.now;
    const store = new ProcessStore(process, harbour.books, now);
    const pass = (ms: number) => {
      harbour.now += Math.max(ms, OVERSLEPT_MS);
    };
    const context: Context = {
      store: actor.store?.(store) ?? store,
      view: this.#sightOf(actor.lags ?? LIVE, process),
      clock: processClock(process, now, pass),
      random: processRandom(process),
      log: silent,
      serial: new KeyedMutex(),
    };
    const wait = (ms: number) =>
      process.turn({
        call: () => `${ms / 1_000} s go by`,
        perform: () => {
          harbour.now += ms;
        },
        learn: () => ({ text: "later" }),
      });
    return { name: actor.name, context, harbour, wait };
  }

  #sightOf(lags: Lags, process: Process): Sight {
    const { books } = this.harbour;
    const copies = { seed: this.#stage.seed, start: books };
    if (Object.values(lags).includes("start")) copies.start = new Books(books);
    const from = {
      claims: booksFor(lags.claims, books, copies),
      reservations: booksFor(lags.reservations, books, copies),
    };
    return new Sight(this.#stage.pools, from, (glimpse) => process.learnt.push(glimpse));
  }
}
