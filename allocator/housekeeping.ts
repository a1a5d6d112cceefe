// SPDX-License-Identifier: Apache-2.0
import { type Claim, claimKey } from "./claim.ts";
import type { Context } from "./context.ts";
import { messageOf } from "./errors.ts";
import type { Metrics } from "./ports.ts";
import type { Reaper, ReapReport } from "./reaper.ts";

/** Two observations 30 s apart and a pass every 10 s keep within the 60 s of invariant 6. */
const PASS_EVERY_MS = 10_000;

export interface Housekeeping {
  /** Judges one claim soon, because something just happened to what it is kept for. */
  suspect(claim: Claim): void;
  /** Ends after the work at hand. Repeatable. */
  close(): Promise<void>;
}

/** Runs the reaper in the background. A pass that fails is logged and tried again; it never stops by itself. */
export function keepHouse(context: Context, reaper: Reaper, metrics: Metrics): Housekeeping {
  const stop = new AbortController();
  const suspects = new Map<string, Claim>(); // namespace/name -> claim as it was when it was suspected
  let judging: Promise<void> = Promise.resolve();
  const judgeAll = async () => {
    for (const [key, claim] of suspects) {
      if (stop.signal.aborted) return;
      suspects.delete(key);
      await judgeOne(context, reaper, claim);
    }
  };
  const passes = repeat(context, stop.signal, () => passOnce(context, reaper, metrics));
  return {
    suspect(claim) {
      if (suspects.size === 0) judging = judging.then(judgeAll);
      suspects.set(claimKey(claim), claim);
    },
    async close() {
      stop.abort();
      await Promise.all([passes, judging]);
    },
  };
}

async function judgeOne(context: Context, reaper: Reaper, claim: Claim): Promise<void> {
  const key = claimKey(claim);
  try {
    const seen = await context.store.get("claim", key);
    if (seen !== undefined) await reaper.judgeClaim(seen);
  } catch (error) {
    context.log.warn("claim could not be judged; the next pass tries again", {
      claim: key,
      error: messageOf(error),
    });
  }
}

async function passOnce(context: Context, reaper: Reaper, metrics: Metrics): Promise<void> {
  const began = context.clock.monotonic();
  let outcome = "failed";
  try {
    report(context, metrics, await reaper.pass());
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
      context.log.error("housekeeping pass failed", { error });
    }
    await context.clock.sleep(PASS_EVERY_MS, signal);
  }
}

function report(
  context: Context,
  metrics: Metrics,
  { orphans, cooled, released, retained }: ReapReport,
): void {
  for (const [reason, n] of Object.entries({ orphan: orphans, cooled, retention: released })) {
    for (let i = 0; i < n; i++) metrics.increment("berth_reaper_released_total", { reason });
  }
  if (orphans + released + retained > 0) {
    context.log.info("housekeeping pass", { orphans, cooled, released, retained });
  }
}
