// SPDX-License-Identifier: Apache-2.0
import { isAtRest } from "./bind.ts";
import { isReserved } from "./claim.ts";
import type { Context } from "./context.ts";
import { rely } from "./reap.ts";
import { release } from "./release.ts";
import type { Stored } from "./store/store.ts";
import { giveBack, takeCandidate } from "./take.ts";

/**
 * Reserves again what a claim lists and has lost. A reserver that was reaped while it paused and crashed after it wrote
 * its claim leaves such a claim behind: nobody can bind it, and nobody else would repair it. If another identity has an
 * address by now the claim is given up. `later`: somebody is at work on it, or its pool is gone.
 */
export async function mend(
  context: Context,
  hint: Stored<"claim">,
): Promise<"whole" | "mended" | "given up" | "later"> {
  const seen = await context.store.get("claim", hint.key);
  if (seen === undefined || !isReserved(seen.record)) return "whole";
  const { namespace, name, nonce, addresses } = seen.record;
  let outcome: "whole" | "mended" = "whole";
  for (const address of addresses) {
    if (await rely(context.store, address, nonce)) continue;
    const pool = context.view.poolOf(address)?.name;
    if (pool === undefined) return "later";
    const got = await takeCandidate(context, { address, pool, claim: { namespace, name }, nonce });
    if (got.kind === "contended") return "later";
    if (got.kind === "taken") return await giveUp(context, seen);
    await giveBack(context, [got]); // stays, unless the claim has stopped listing the address meanwhile
    outcome = "mended";
  }
  return outcome;
}

/** A claim that a person made waits again, as it did before it was reserved. */
async function giveUp(context: Context, seen: Stored<"claim">): Promise<"given up" | "later"> {
  if (!isAtRest(seen.record)) return "later";
  if (seen.record.handMade !== true) {
    return (await release(context, seen)) === "released" ? "given up" : "later";
  }
  const { binding: _, ...rest } = seen.record;
  const waiting = await context.store.replace("claim", seen, { ...rest, addresses: [], nonce: "" });
  return waiting.kind === "replaced" ? "given up" : "later";
}
