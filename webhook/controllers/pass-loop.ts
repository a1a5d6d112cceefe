// SPDX-License-Identifier: Apache-2.0

import { type Controller, runQueue } from "../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import type { ControllerDeps } from "./controller.ts";

/** What changes within this time is looked at together. */
const SOON_MS = 200;
/** What cools, or is gone for long enough, comes to its end without anything that would change. */
const EVERY_MS = 5_000;

/** A controller that looks at everything there is, pass by pass. */
export interface Passes {
  /** Of its queue. */
  readonly name: string;
  /** Everything was listed once: before, all that is not known yet would look as if it were gone. */
  knows(): boolean;
  hasWork(): boolean;
  /** Gives for how many milliseconds it rests, for others to have their turn; not beyond the next pass that comes by itself. */
  pass(signal: AbortSignal): Promise<number>;
  /** There is nothing to do, or another replica leads: what it remembers is old by the next pass. */
  forget(): void;
}

type PassLoopDeps = Pick<ControllerDeps, "context" | "leadership" | "metrics">;

/** Passes for as long as this replica leads: soon after something changes, and now and then. */
export class PassLoop {
  readonly #deps: PassLoopDeps;
  readonly #passes: Passes;
  readonly #queue: WorkQueue;
  readonly #stop = new AbortController();
  /** Monotonic: the next pass begins no sooner. */
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: PassLoopDeps, passes: Passes) {
    this.#deps = deps;
    this.#passes = passes;
    const { clock, random, log } = deps.context;
    const work = (_: string, signal: AbortSignal) => this.#pass(signal);
    this.#queue = new WorkQueue({ name: passes.name, work, clock, random, log, metrics: deps.metrics });
  }

  /** `watched`: each takes what is to be called when something has changed, and gives what takes that away again. */
  start(watched: readonly ((soon: () => void) => () => void)[]): Controller {
    const soon = () => this.#soon();
    const undo = [this.#deps.leadership.onGain(soon), ...watched.map((watch) => watch(soon))];
    soon();
    return runQueue(this.#queue, [...undo, () => this.#stop.abort()]);
  }

  /** Aborted when the controller is closed. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  mayWrite(): boolean {
    return !this.#stop.signal.aborted && this.#deps.leadership.leads();
  }

  #soon(): void {
    if (!this.#deps.leadership.leads()) return;
    const { clock } = this.#deps.context;
    this.#queue.addAfter(this.#passes.name, Math.max(SOON_MS, this.#restsUntil - clock.monotonic()));
  }

  async #pass(signal: AbortSignal): Promise<Outcome> {
    const { leadership, context } = this.#deps;
    if (!leadership.leads()) return this.#forget();
    if (!this.#passes.knows()) return { kind: "again", afterMs: SOON_MS };
    if (!this.#passes.hasWork()) return this.#forget();
    // what changed during the pass asked for the next one before it was known how long this one rests
    const rest = this.#restsUntil - context.clock.monotonic();
    if (rest > 0) return { kind: "again", afterMs: rest };
    const restMs = await this.#passes.pass(signal);
    // a process that stood still during a pass took long, and cost nobody anything
    this.#restsUntil = context.clock.monotonic() + Math.min(restMs, EVERY_MS);
    return signal.aborted ? DONE : { kind: "again", afterMs: EVERY_MS };
  }

  #forget(): Outcome {
    this.#passes.forget();
    this.#restsUntil = Number.NEGATIVE_INFINITY;
    return DONE;
  }
}
