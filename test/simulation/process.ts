// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Random } from "../../allocator/base/ports.ts";
import { SeededRandom } from "../support/random.ts";
import type { Fate, Happening, Schedule } from "./schedule.ts";

/** Milliseconds since 1970 at which every run begins. */
export const BEGIN = 1_000_000_000_000;

/** What may go wrong with a call over the network. Slowness is the commonest. */
const REMOTE_FATES: readonly Fate[] = [
  ...(["slow", "slow", "stalls", "stalls", "hangs"] as const),
  ...(["lost", "unheard", "diesBefore", "diesAfter"] as const),
];
/** Longer than a reserver waits for another one; longer than a garbage collector waits between its two looks. */
const STALL_MS = 2_000;
const HANG_MS = 45_000;

/** A call that leaves the process. */
export interface Operation<T> {
  readonly what: () => string;
  readonly act: () => T;
  /** The answer in words. */
  readonly tell: (result: T) => string;
}

/** A place that one process after the other holds. What befalls it outlives the process. */
export class Post {
  readonly name: string;
  readonly schedule: Schedule;
  /** Its wall clock is that much ahead of the truth, in milliseconds. */
  skew = 0;
  /** It does not run: paused by its host, or starved. */
  frozen = false;
  /** Whatever it sends to others is lost. */
  cut = false;
  /** It hears nothing new from its watches. */
  deaf = false;
  /** How many processes have held it. */
  lives = 0;
  process: Process | undefined;
  /** The one before, which nobody ended: it goes on beside the one that has its place. */
  left: Process | undefined;
  /** All of them, to be buried when the run is over. */
  readonly lived: Process[] = [];
  readonly #launch: (process: Process) => void;

  constructor(schedule: Schedule, name: string, launch: (process: Process) => void) {
    this.schedule = schedule;
    this.name = name;
    this.#launch = launch;
  }

  start(): void {
    this.lives++;
    this.process = new Process(this);
    this.lived.push(this.process);
    this.#launch(this.process);
  }

  /** Another one is started, and the one that is there is left to itself, as a container that nobody ends. */
  startBeside(): void {
    this.left?.end();
    this.left = this.process;
    this.start();
  }

  /** `kill -9`, of both if there are two. Somebody starts it again, sooner or later. */
  crash(): void {
    this.left?.end();
    this.left = undefined;
    const { process } = this;
    if (process === undefined) return;
    this.process = undefined;
    this.frozen = false;
    process.end();
    const run = () => {
      this.start();
      return "";
    };
    this.schedule.offer({ owner: this, who: "supervisor", what: () => `starts ${this.name} again`, run });
  }
}

/** One life at a post. Its calls, timers and messages wait in the schedule, and end with it. */
export class Process {
  readonly post: Post;
  readonly clock: Clock;
  readonly random: Random;
  readonly #onEnds: (() => void)[] = [];
  readonly #open = new Set<AbortController>();
  readonly #ended = Promise.withResolvers<undefined>();
  #alive = true;

  constructor(post: Post) {
    this.post = post;
    this.clock = {
      now: () => Math.floor(BEGIN + post.schedule.time + post.skew),
      monotonic: () => post.schedule.time,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
    const chance = new SeededRandom(
      post.name.length * 7_919 + post.lives * 104_729 + post.name.charCodeAt(1),
    );
    let tokens = 0;
    this.random = {
      // Nobody else's, and short enough to be read in a story.
      token: () => `${post.name}.${post.lives}.${++tokens}`,
      fraction: () => chance.fraction(),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  end(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.post.schedule.drop(this);
    for (const callback of this.#onEnds) callback();
    this.#ended.resolve(undefined);
  }

  onEnd(callback: () => void): void {
    this.#onEnds.push(callback);
  }

  /** Work of this process that `abort` ends. Undefined when it dies over it. */
  async run<T>(abort: AbortController, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#open.add(abort);
    const done = work(abort.signal).finally(() => this.#open.delete(abort));
    return await Promise.race([done, this.#ended.promise]);
  }

  /** The run is over. Node.js keeps combined signals that somebody listens to for ever, and all that hangs on them. */
  bury(): void {
    this.end();
    for (const abort of this.#open) abort.abort();
  }

  /** Something that happens to this process and may happen when its turn comes. */
  offer(happening: Pick<Happening, "what" | "run" | "fates" | "due">): void {
    if (!this.#alive) return;
    const { schedule, name } = this.post;
    schedule.offer({ ...happening, owner: this, who: name, ready: () => !this.post.frozen });
  }

  /** A call over the network: `act` happens elsewhere, at once and whole, and its answer may never come. */
  call<T>(operation: Operation<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (fate: Fate) =>
        this.#perform(operation, this.post.cut ? "lost" : fate, { resolve, reject });
      this.offer({ what: operation.what, run, fates: REMOTE_FATES });
    });
  }

  #perform<T>(
    { what, act, tell }: Operation<T>,
    fate: Fate,
    to: { readonly resolve: (result: T) => void; readonly reject: (error: unknown) => void },
  ): string {
    if (fate === "lost") {
      to.reject(new BerthError("STORE_UNAVAILABLE", "the connection broke"));
      return "LOST, and not done";
    }
    if (fate === "diesBefore") {
      this.post.crash();
      return "CRASHES before it is done";
    }
    if (fate === "stalls" || fate === "hangs") {
      const due = this.post.schedule.time + (fate === "stalls" ? STALL_MS : HANG_MS);
      const run = (next: Fate) => this.#perform({ what, act, tell }, this.post.cut ? "lost" : next, to);
      this.offer({ what: () => `(late) ${what()}`, run, due });
      return `${fate}, and is not done yet`;
    }
    const result = act();
    if (fate === "diesAfter") {
      this.post.crash();
      return `done (${tell(result)}), and CRASHES`;
    }
    if (fate === "unheard") {
      to.reject(new BerthError("TIMED_OUT", "no answer came"));
      return `done (${tell(result)}), and the answer is LOST`;
    }
    if (fate === "slow") {
      const run = () => {
        to.resolve(result);
        return tell(result);
      };
      this.offer({ what: () => `hears of: ${what()}`, run });
      return "done, and the answer is on its way";
    }
    to.resolve(result);
    return tell(result);
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!(ms > 0) || signal?.aborted === true) return Promise.resolve();
    const { schedule, name } = this.post;
    return new Promise((resolve) => {
      const wake = () => {
        schedule.withdraw(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
        return "";
      };
      const due = schedule.time + ms;
      const what = () => `wakes after ${ms} ms`;
      const timer = { owner: this, who: name, what, due, ready: () => !this.post.frozen, run: wake };
      if (!this.#alive) return;
      signal?.addEventListener("abort", wake, { once: true });
      schedule.offer(timer);
    });
  }
}
