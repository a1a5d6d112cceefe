// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../allocator/base/errors.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { phaseOf } from "../../allocator/model/phase.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import type { ControllerDeps } from "./controller.ts";
import { DebounceQueue } from "./debounce-queue.ts";

/** A pod on its way to its address is there by then, as a rule, and its agent has written the last phase of the way. */
const QUIET_MS = 5_000;
/** Between two writes: 10 a second, for there may be 100,000 claims that were never reported. */
const GAP_MS = 100;
/** Stands for ever: whatever enters wakes it. */
const LONG_MS = 7_200_000;

type PhasesDeps = Pick<ControllerDeps, "context" | "cache" | "leadership">;

/**
 * Writes where claims stand into their status, for `kubectl get ipclaim`: nothing else depends on it. Admission,
 * binder and garbage collector leave it to this, and agents write what they see themselves.
 */
export function startPhases(deps: PhasesDeps): Controller {
  return new Phases(deps).start();
}

/** The phase in the status is not the claim's, and the claim is to stay. */
export function isPhaseStale(claim: Claim): boolean {
  return claim.releasing !== true && claim.status.phase !== phaseOf(claim);
}

class Phases {
  readonly #deps: PhasesDeps;
  readonly #settling = new DebounceQueue(QUIET_MS);
  readonly #stop = new AbortController();
  #wake: () => void = () => {};

  constructor(deps: PhasesDeps) {
    this.#deps = deps;
  }

  start(): Controller {
    const { leadership, cache } = this.#deps;
    const undo = [
      leadership.onGain(() => this.#addAll()),
      cache.onChange("claim", (key, now) => this.#changed(key, now)),
    ];
    this.#addAll();
    const work = this.#run();
    return {
      close: async () => {
        for (const take of undo) take();
        this.#stop.abort();
        await work;
      },
    };
  }

  #addAll(): void {
    const { leadership, cache, context } = this.#deps;
    if (!leadership.leads()) return;
    const now = context.clock.monotonic();
    for (const { key, record } of cache.claims()) if (isPhaseStale(record)) this.#settling.enterOld(key, now);
    this.#wake();
  }

  #changed(key: string, seen: Stored<"claim"> | undefined): void {
    const { leadership, cache, context } = this.#deps;
    if (!leadership.leads()) return;
    const now = context.clock.monotonic();
    if (seen === undefined || !isPhaseStale(seen.record)) this.#settling.leave(key);
    else if (cache.ready) this.#settling.enter(key, now);
    else this.#settling.enterOld(key, now);
    this.#wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { context, leadership } = this.#deps;
    while (!signal.aborted) {
      if (!leadership.leads()) this.#settling.clear();
      const key = this.#settling.take(context.clock.monotonic());
      if (key === undefined) await this.#rest(signal);
      else await context.clock.sleep(await this.#settle(key), signal);
    }
  }

  /** Until something enters or is due. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.context;
    const woken = new AbortController();
    this.#wake = () => woken.abort("woken"); // a reason, or each makes an error and its stack
    const ms = Math.min(this.#settling.dueAt() - clock.monotonic(), LONG_MS);
    await clock.sleep(ms, AbortSignal.any([signal, woken.signal]));
    this.#wake = () => {};
  }

  /** Gives the ms until the next claim may have its turn. */
  async #settle(key: string): Promise<number> {
    const { cache, context } = this.#deps;
    const seen = cache.claim(key);
    if (seen === undefined || !isPhaseStale(seen.record)) return 0;
    const { status } = seen.record;
    try {
      const result = await context.store.report(seen, { ...status, phase: phaseOf(seen.record) });
      if (result.kind === "conflict") this.#again(key);
      return GAP_MS;
    } catch (error) {
      this.#again(key);
      context.log.warn("phase of a claim cannot be written; it is tried again", {
        claim: key,
        error: messageOf(error),
      });
      return QUIET_MS;
    }
  }

  /** By then the cache has heard of what came between. */
  #again(key: string): void {
    this.#settling.enter(key, this.#deps.context.clock.monotonic());
  }
}
