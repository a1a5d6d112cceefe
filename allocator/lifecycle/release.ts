// SPDX-License-Identifier: Apache-2.0

import { listed } from "../base/listed.ts";
import type { Context } from "../cache/context.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Stored } from "../store/store.ts";
import { cooldown, cooldownOrphan } from "./orphan-mark.ts";

/**
 * Gives a claim's addresses back: the claim goes to releasing, from where nobody may use it, then its reservations
 * cool, then it is deleted. A crash in between is finished by the garbage collector. `changed`: the claim is no longer the one
 * that was judged.
 */
export async function release(context: Context, seen: Stored<"claim">): Promise<"released" | "changed"> {
  if (seen.record.releasing === true) return await finishRelease(context, seen);
  const { binding: _, retained: __, ...rest } = seen.record;
  const result = await context.store.replace("claim", seen, { ...rest, releasing: true });
  if (result.kind === "conflict") return "changed";
  return await finishRelease(context, result.stored);
}

async function finishRelease(context: Context, seen: Stored<"claim">): Promise<"released" | "changed"> {
  const { record, finalizers = [] } = seen;
  for (const address of record.addresses) await startCooldown(context, address, record.nonce);
  // One that somebody deleted went with the write that ended its binding, or goes when others let it go.
  const removed = record.deleting === true || (await context.store.remove("claim", seen)).kind === "removed";
  if (!removed) return (await isGone(context, seen)) ? "released" : "changed";
  const what = { claim: claimKey(record), address: record.addresses.join(",") };
  if (finalizers.length === 0) context.log.info("claim released", what);
  else
    context.log.warn("claim released; others keep its record", {
      ...what,
      finalizers: namedFinalizers(finalizers),
    });
  return "released";
}

/** A garbage collector that saw it releasing was faster. */
async function isGone({ store }: Pick<Context, "store">, { key, uid }: Stored<"claim">): Promise<boolean> {
  return (await store.get("claim", key))?.uid !== uid;
}

/** In words: their namespace chooses how many there are. */
export function namedFinalizers(finalizers: readonly string[]): string {
  return listed(finalizers, 5);
}

/** Something of a releasing claim does not cool yet, as far as the view shows it: what it shows later a pass of the garbage collector meets. */
export function hasToCool({ view }: Pick<Context, "view">, { addresses, nonce }: Claim): boolean {
  return addresses.some((address) => {
    const shown = view.reservation(address)?.record;
    return shown?.nonce === nonce && shown.releasedAt === undefined;
  });
}

/**
 * Sets the reservation of a releasing claim to cooling if it is the nonce's own. Until its pool's cooldown is over only
 * the same identity may have the address again: connections and caches of the old holder die out first.
 */
async function startCooldown(context: Context, address: Address, nonce: string): Promise<void> {
  await cooldownBy(context, { address, nonce }, (seen, now) => cooldown(context, seen, now));
}

/** The same for an address that a living claim has stopped listing, unless it has come to list it again. */
export async function startCooldownIfDropped(
  context: Context,
  address: Address,
  nonce: string,
): Promise<void> {
  await cooldownBy(context, { address, nonce }, (seen, now) => cooldownOrphan(context, seen, now));
}

/** By `end`, if the reservation is there, the nonce's own, and not cooling already. */
async function cooldownBy(
  { store, clock }: Context,
  { address, nonce }: { readonly address: Address; readonly nonce: string },
  end: (seen: Stored<"reservation">, releasedAt: number) => Promise<"gone" | "relied" | "changed">,
): Promise<void> {
  const change = { kind: "reservation", key: address, doing: "it was set to cooling" } as const;
  await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined || seen.record.nonce !== nonce || seen.record.releasedAt !== undefined) return;
    return (await end(seen, clock.now())) === "changed" ? "conflict" : undefined;
  });
}
