// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../base/errors.ts";
import type { Metrics } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import { readClaim } from "../cache/reader.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import type { GarbageCollector, GcReport } from "./garbage-collector.ts";

/** Two observations 30 s apart and a pass every 10 s keep within the 60 s of invariant 6. */
const PASS_EVERY_MS = 10_000;
/** What was kept is judged again when it changes within this time: of a node that hangs, a sandbox ends minutes after its pod is gone. */
const FOLLOWED_MS = 600_000;
/** Suspects that are judged at once, as a pass does. */
const AT_ONCE = 16;
/** Suspects that each judge looks at in one go, in 1 ms or so for all of them: most are kept by what the view shows, and nobody has a turn meanwhile. */
const IN_ONE_GO = 6;

export interface GcLoop {
  /** Judges one claim soon, because something just happened to what it is kept for. */
  enqueue(claim: Claim): void;
  /** Ends after the work at hand. Repeatable. */
  close(): Promise<void>;
}

/** Runs the garbage collector in the background. A pass that fails is logged and tried again; it never stops by itself. */
export function startGcLoop(context: Context, collector: GarbageCollector, metrics: Metrics): GcLoop {
  const stop = new AbortController();
  const suspects = new Map<string, Claim>(); // namespace/name -> claim as it was when it was suspected
  const judges = new Set<Promise<void>>(); // those that are at work
  let idle = AT_ONCE;
  const judged = new Set<string>(); // namespace/name of those that are judged now
  const kept = new Map<string, number>(); // namespace/name -> monotonic time at which it was found to be kept
  const judge = async () => {
    await Promise.resolve(); // whoever points one out waits for nothing
    let looks = 0;
    for (const [key, claim] of suspects) {
      if (stop.signal.aborted) break;
      // The two would only meet in conflicts. It stays a suspect, and comes up once more to who judges it: it stands behind where he is.
      if (judged.has(key)) continue;
      suspects.delete(key);
      judged.add(key);
      kept.delete(key);
      if (await isKept(context, collector, claim)) kept.set(key, context.clock.monotonic());
      judged.delete(key);
      if (++looks % IN_ONE_GO === 0) await context.clock.sleep(0);
    }
    idle++;
  };
  const enqueue = (claim: Claim) => {
    suspects.set(claimKey(claim), claim);
    if (idle === 0) return;
    idle--;
    const judging = judge().finally(() => judges.delete(judging));
    judges.add(judging);
  };
  const isRecent = (at: number) => context.clock.monotonic() - at < FOLLOWED_MS;
  // the view may have been behind, or the sandbox have ended after its pod was gone: nobody waits for the next pass
  const unsubscribe = context.view.onChange?.("claim", (key, now) => {
    if (now === undefined) kept.delete(key);
    if (now === undefined || now.record.releasing === true) return;
    if (judged.has(key) || isRecent(kept.get(key) ?? Number.NEGATIVE_INFINITY)) enqueue(now.record);
  });
  const passes = repeat(context, stop.signal, async () => {
    for (const [key, at] of kept) if (!isRecent(at)) kept.delete(key);
    await passOnce(context, collector, metrics);
  });
  return {
    enqueue,
    async close() {
      unsubscribe?.();
      stop.abort();
      await Promise.all([passes, ...judges]);
      collector.close();
    },
  };
}

/** As far as the view shows: what would be let go by that is read and judged again before. False: it was not kept, or cannot be judged now. */
async function isKept(context: Context, collector: GarbageCollector, claim: Claim): Promise<boolean> {
  const key = claimKey(claim);
  try {
    const seen = await readClaim(context, key);
    return seen !== undefined && (await collector.judgeClaim(seen)).kind === "keep";
  } catch (error) {
    context.log.warn("claim could not be judged; the next pass tries again", {
      claim: key,
      error: messageOf(error),
    });
    return false;
  }
}

async function passOnce(context: Context, collector: GarbageCollector, metrics: Metrics): Promise<void> {
  const began = context.clock.monotonic();
  let outcome = "failed";
  try {
    report(context, metrics, await collector.pass());
    outcome = "succeeded";
  } finally {
    metrics.increment("berth_reaper_passes_total", { outcome });
    metrics.observe("berth_reaper_pass_duration_seconds", (context.clock.monotonic() - began) / 1000);
  }
}

async function repeat(context: Context, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch (error) {
      context.log.error("garbage collection pass failed", { error });
    }
    await context.clock.sleep(PASS_EVERY_MS, signal);
  }
}

function report(context: Context, metrics: Metrics, { orphans, cooled, released, retained }: GcReport): void {
  for (const [reason, n] of Object.entries({ orphan: orphans, cooled, retention: released })) {
    for (let i = 0; i < n; i++) metrics.increment("berth_reaper_released_total", { reason });
  }
  if (orphans + released + retained > 0) {
    context.log.info("garbage collection pass", { orphans, cooled, released, retained });
  }
}
