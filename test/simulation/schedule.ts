// SPDX-License-Identifier: Apache-2.0
import type { SeededRandom } from "../support/random.ts";

/**
 * How a call fares, beside `well`. `slow`: done, and the answer waits. `stalls`, `hangs`: not done before a while, or a
 * long while, is over. `lost`: never done. `unheard`: done, and whoever
 * called is told that it failed. `diesBefore`, `diesAfter`: whoever called crashes, and it was not done, or was.
 * `gap`: a watch breaks and begins anew.
 */
export type Fate =
  | "well"
  | "slow"
  | "stalls"
  | "hangs"
  | "lost"
  | "unheard"
  | "diesBefore"
  | "diesAfter"
  | "gap";

/** Something that may happen next: a call that is under way, a timer, a message. */
export interface Happening {
  /** Whose it is; what belongs to a process is gone with it. */
  readonly owner: object;
  /** Who acts, in the story. */
  readonly who: string;
  readonly what: () => string;
  /** May it happen now? Absent: at any time. */
  readonly ready?: () => boolean;
  /** Milliseconds of the schedule before which it does not happen. */
  readonly due?: number;
  readonly fates?: readonly Fate[];
  /** Gives what came of it, in words. */
  readonly run: (fate: Fate) => string;
}

/** In which order things happen for a while, how many of them, and how badly they fare. */
export interface Flow {
  /** The most happenings; time moves on to the next timer by itself when there are many. */
  readonly events: number;
  readonly order: Order;
  /** Of each happening, that it does not go well: 0 to 1. */
  readonly trouble: number;
  readonly random: SeededRandom;
}

/** `old`: what waits longest. `new`: what came last. `any`: anything. `same`: whoever was last goes on if he can. */
export type Order = "old" | "new" | "any" | "same";

/** One line of the story. */
export interface Line {
  readonly at: number;
  readonly who: string;
  readonly what: string;
  readonly outcome: string;
}

/** More than this and time does not move by itself: long waits are steps of their own. */
const PATIENCE_MS = 1_200;

/**
 * The only source of order in a run: everything that takes time waits here until it is chosen. What is chosen runs
 * until nothing moves any more, then the onlooker is asked whether all is well.
 */
export class Schedule {
  /** Milliseconds since the run began. */
  time = 0;
  /** How many things have happened. */
  count = 0;
  /** Kept when somebody wants to read it. */
  readonly trace: Line[] | undefined;
  readonly #observer: () => void;
  #pending: Happening[] = [];
  #busy = 0;
  /** Whose happening it was, or is. */
  acting: object | undefined;

  constructor(options: { readonly tells: boolean; readonly observer: () => void }) {
    this.trace = options.tells ? [] : undefined;
    this.#observer = options.observer;
  }

  offer(happening: Happening): void {
    this.#pending.push(happening);
  }

  withdraw(happening: Happening): void {
    const at = this.#pending.indexOf(happening);
    if (at >= 0) this.#pending.splice(at, 1);
  }

  /** Everything of this owner will never happen. */
  drop(owner: object): void {
    this.#pending = this.#pending.filter((happening) => happening.owner !== owner);
  }

  /** Work that ends by itself after more than one turn of the event loop; it is waited for before anything else happens. */
  busy<T>(work: Promise<T>): Promise<T> {
    this.#busy++;
    return work.finally(() => {
      this.#busy--;
    });
  }

  tell(who: string, what: () => string, outcome = ""): void {
    this.trace?.push({ at: this.time, who, what: what(), outcome });
  }

  /** Lets things happen. Gives how many did. */
  async flow(flow: Flow): Promise<number> {
    await this.settle();
    let done = 0;
    while (done < flow.events) {
      const next = this.#choose(flow) ?? this.#moveOn(flow);
      if (next === undefined) break;
      done++;
      await this.#happen(next, this.#fateOf(next, flow));
    }
    return done;
  }

  /** Until nothing moves that is not offered here. */
  async settle(): Promise<void> {
    do await turn();
    while (this.#busy > 0);
    this.#observer();
  }

  async #happen(happening: Happening, fate: Fate): Promise<void> {
    this.withdraw(happening);
    this.acting = happening.owner;
    this.count++;
    this.time++;
    const place = this.trace?.length ?? 0;
    const what = this.trace && happening.what();
    const outcome = happening.run(fate);
    this.trace?.splice(place, 0, { at: this.time, who: happening.who, what: what ?? "", outcome });
    await this.settle();
  }

  #choose({ order, random }: Flow): Happening | undefined {
    const ready = this.#pending.filter((happening) => this.#isReady(happening));
    if (ready.length === 0) return undefined;
    if (order === "old") return ready[0];
    if (order === "new") return ready.at(-1);
    const same = order === "same" ? ready.filter(({ owner }) => owner === this.acting) : [];
    return random.pick(same.length > 0 ? same : ready);
  }

  #isReady({ due, ready }: Happening): boolean {
    return (due === undefined || due <= this.time) && ready?.() !== false;
  }

  /** The next timer, when it is near and the flow is to run until all is quiet. */
  #moveOn({ events }: Flow): Happening | undefined {
    if (events < UNTIL_QUIET) return undefined;
    const waiting = this.#pending.filter(({ due, ready }) => due !== undefined && ready?.() !== false);
    const next = waiting.toSorted((a, b) => (a.due ?? 0) - (b.due ?? 0))[0];
    if (next?.due === undefined || next.due > this.time + PATIENCE_MS) return undefined;
    this.time = next.due;
    return next;
  }

  #fateOf({ fates = [] }: Happening, { trouble, random }: Flow): Fate {
    if (trouble === 0 || fates.length === 0) return "well";
    return random.fraction() < trouble ? random.pick(fates) : "well";
  }
}

/** That many events are meant to be all there are. */
export const UNTIL_QUIET = 60;

/** All microtasks are done by then. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
