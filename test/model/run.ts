// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type Pool, type PoolRecord, parsePool } from "../../allocator/pool/pool.ts";
import type { Kind, Records, Store, Stored } from "../../allocator/store/store.ts";
import { firstBroken } from "./invariants.ts";
import { MemoryRecords } from "./memory-records.ts";
import { Process, type Said } from "./process.ts";
import { ProcessStore, processClock, processRandom } from "./process-store.ts";
import { BEGIN, RunState } from "./run-state.ts";
import { type Lags, LIVE, recordsFor, Sight } from "./sight.ts";

/** A record that is there when the run begins. */
export type Seed = { readonly [K in Kind]: { readonly kind: K; readonly record: Records[K] } }[Kind];

/** What an actor has before him: the product's own context, and the world to tell what he was given. */
export interface Seat {
  readonly name: string;
  readonly context: Context;
  readonly state: RunState;
  /** The actor was told that the claim is his. */
  answered(claim: Stored<"claim">): void;
  /** A step in which nothing happens but that time goes by, for everybody. */
  wait(ms: number): Promise<void>;
}

/** One process of a scenario. It has a context of its own, as a replica has. */
export interface Actor {
  readonly name: string;
  readonly act: (seat: Seat) => Promise<void>;
  /** How far its view lags; absent: not at all. */
  readonly lags?: Lags;
  /**
   * Its act is one call of `reserve`, or of `allocateSlot` for a single slot: when it plans, it begins anew from the claim
   * as it has just read it, and remembers nothing else but how it began.
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
  /**
   * Milliseconds by which time moves on, in this order, each at any moment. Nothing else takes time: a sleeper may wake
   * in the same moment, because others may have been waiting for longer. Absent: 1.5 s twice.
   */
  readonly time?: readonly number[];
  /** The store stamps records with whole seconds, as an API server does; absent: with milliseconds of its writers' clocks. */
  readonly stampsSeconds?: true;
  /** More states than a test has time for: there it is explored in part, and whole by main.ts. */
  readonly long?: true;
}

/** Twice as long as it takes for a reservation to look broken off. */
const TIME: readonly number[] = [];
/** The seed is that old when the run begins. */
const SEED_AGE_MS = 600_000;

/** What all runs of a scenario begin with. */
export interface Stage {
  readonly scenario: Scenario;
  readonly pools: readonly Pool[];
  readonly seed: MemoryRecords;
}

export function stageOf(scenario: Scenario): Stage {
  const pools = scenario.pools.map((record) => {
    const pool = parsePool(record);
    if (isRefusal(pool)) throw new TypeError(`scenario "${scenario.title}": ${pool.message}`);
    return pool;
  });
  const seed = new MemoryRecords();
  for (const record of scenario.pools) seed.create("pool", record, BEGIN - SEED_AGE_MS);
  for (const one of scenario.seed ?? []) {
    const { stored } = seed.create(one.kind, one.record, BEGIN - SEED_AGE_MS);
    // a record is made without what its owner says of it
    if (one.kind === "block" && one.record.status !== undefined)
      seed.reportBlock(stored as Stored<"block">, one.record.status);
  }
  return { scenario, pools, seed };
}

function passing(time: readonly number[]): Actor {
  return {
    name: "time",
    async act({ wait }) {
      for (const ms of time) await wait(ms);
    },
  };
}

/** One run of a scenario's processes, stepped from outside. */
export class Run {
  readonly state: RunState;
  readonly processes: readonly Process[];
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.state = new RunState(stage.pools, stage.seed);
    const { actors, time = TIME } = stage.scenario;
    const all = time.length === 0 ? actors : [...actors, passing(time)];
    this.processes = all.map((actor) => this.#processOf(actor));
  }

  /** The processes that can take a step, by their place in the scenario. */
  enabled(): number[] {
    return [...this.processes.keys()].filter((i) => this.processes[i]?.ended === false);
  }

  /** Takes the next step of a process, and gives the words for it. */
  async step(i: number): Promise<() => Said> {
    const process = this.processes[i];
    if (process === undefined) throw new RangeError(`there is no process ${i}`);
    this.state.acting = process.name;
    return await process.step();
  }

  /** The words for what is wrong now. */
  broken(): string | undefined {
    return firstBroken(this.state, this.processes);
  }

  #processOf(actor: Actor): Process {
    const process: Process = new Process(actor, () => actor.act(this.#seatOf(actor, process)));
    return process;
  }

  #seatOf(actor: Actor, process: Process): Seat {
    const { state } = this;
    const now = () => state.now;
    const { stampsSeconds = false } = this.#stage.scenario;
    const store = new ProcessStore(process, state.records, { now, stampsSeconds });
    const context: Context = {
      store: actor.store?.(store) ?? store,
      view: this.#sightOf(actor.lags ?? LIVE, process),
      clock: processClock(process, now),
      random: processRandom(process),
      log: noopLogger,
      serial: new KeyedMutex(),
    };
    const wait = (ms: number) =>
      process.turn({
        call: () => `${ms / 1_000} s go by`,
        perform: () => {
          state.now += ms;
        },
        learn: () => ({ text: "later" }),
      });
    return { name: actor.name, context, state, answered: (claim) => this.#answered(actor, claim), wait };
  }

  /** A view that lags may answer with what is gone, or was never sure. Binding, which reads the store, finds out. */
  #answered({ name, lags = LIVE }: Actor, claim: Stored<"claim">): void {
    const lagging = Object.values(lags).some((lag) => lag === "seed" || lag === "start");
    if (!lagging) this.state.answered(name, claim);
  }

  #sightOf(lags: Lags, process: Process): Sight {
    const { records } = this.state;
    const copies = { seed: this.#stage.seed, start: records };
    if (Object.values(lags).includes("start")) {
      copies.start = new MemoryRecords(records);
      // What it will be shown is settled from here on, whatever it looks at and when.
      for (const kind of ["claim", "reservation", "block"] as const) {
        for (const stored of records.list(kind)) process.learn({ text: "as of now", kind, stored });
      }
    }
    const from = {
      claims: recordsFor(lags.claims, records, copies),
      reservations: recordsFor(lags.reservations, records, copies),
    };
    return new Sight(this.#stage.pools, from, process);
  }
}
