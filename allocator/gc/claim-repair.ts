// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import type { Address } from "../ip/address.ts";
import { acquireCandidate, rollback } from "../lifecycle/acquire.ts";
import { isDetached } from "../lifecycle/bind.ts";
import { blockAgainst } from "../lifecycle/block-conflict.ts";
import { keepFromUndo } from "../lifecycle/keep-from-undo.ts";
import { ensureUnmarked } from "../lifecycle/orphan-mark.ts";
import { release } from "../lifecycle/release.ts";
import { unbind } from "../lifecycle/unbind.ts";
import { type Claim, isReserved } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";

/**
 * Reserves again what a claim lists and has lost. A reserver that was collected while it paused and crashed after it wrote
 * its claim leaves such a claim behind: nobody can bind it, and nobody else would repair it. If another identity has an
 * address by now, or a node's block does, the claim is given up. `later`: somebody is at work on it, or its pool is gone.
 */
export async function repairClaim(
  context: Context,
  hint: Stored<"claim">,
): Promise<"intact" | "repaired" | "abandoned" | "retry"> {
  const found = await context.store.get("claim", hint.key);
  if (found === undefined || !isReserved(found.record)) return "intact";
  const lacking = await lackingOf(context, found.record);
  if (lacking.some((address) => context.view.poolOf(address) === undefined)) return "retry";
  const seen = lacking.length === 0 ? found : await keepFromUndo(context, found);
  if (seen === undefined) return "retry";
  for (const address of seen.record.addresses) {
    const state = lacking.includes(address) ? await restore(context, seen.record, address) : "reliable";
    if (state === "retry") return "retry";
    if (state === "lost" || (await blockAgainst(context, address)) !== undefined)
      return await giveUp(context, seen);
  }
  return lacking.length === 0 ? "intact" : "repaired";
}

async function lackingOf({ store }: Context, { addresses, nonce }: Claim): Promise<readonly Address[]> {
  const lacking: Address[] = [];
  for (const address of addresses) {
    if (!(await ensureUnmarked(store, address, nonce))) lacking.push(address);
  }
  return lacking;
}

async function restore(
  context: Context,
  { namespace, name, nonce }: Claim,
  address: Address,
): Promise<"reliable" | "lost" | "retry"> {
  const pool = context.view.poolOf(address)?.name;
  if (pool === undefined) return "retry";
  const got = await acquireCandidate(context, { address, pool, claim: { namespace, name }, nonce });
  if (got.kind === "contended") return "retry";
  if (got.kind === "taken") return "lost";
  await rollback(context, [got]); // stays, unless the claim has stopped listing the address meanwhile
  return "reliable";
}

/** A claim that a person made waits again, as it did before it was reserved. */
async function giveUp(context: Context, seen: Stored<"claim">): Promise<"abandoned" | "retry"> {
  if (!isDetached(seen.record)) return "retry";
  if (seen.record.handMade !== true) {
    return (await release(context, seen)) === "released" ? "abandoned" : "retry";
  }
  const waiting = await unbind(context, seen, { addresses: [], nonce: "" });
  return waiting === undefined ? "retry" : "abandoned";
}
