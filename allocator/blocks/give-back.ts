// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import { cooldownOf } from "../cache/cooldown.ts";
import { type Address, fromNumber, parseCidr } from "../ip/address.ts";
import { fullInterval, sizeOf } from "../ip/ip-range.ts";
import { type Block, type Division, isReturned, networkOfBlock } from "../model/block.ts";
import { singleOf } from "../pool/blocks.ts";
import type { Store, Stored } from "../store/store.ts";
import { BlockTimes } from "./block-times.ts";

/** What proves that no sandbox has an address of the block, and that none will get one (invariant 3). */
export type BlockEvidence =
  /** The agent of the block's node said so, of this incarnation of the block. */
  | { readonly kind: "returned"; readonly uid: string }
  /** The node will never run its pods again. */
  | { readonly kind: "fenced"; readonly node: string };

/** What the block itself says: whoever acts on it compares with exactly this revision of it. */
export function returnedBy({ uid, record }: Stored<"block">): BlockEvidence | undefined {
  return isReturned(record) ? { kind: "returned", uid } : undefined;
}

/** Whether the evidence is about this block. A time that has passed is none. */
function mayGiveBack(block: Stored<"block">, evidence: BlockEvidence): boolean {
  return evidence.kind === "fenced" ? evidence.node === block.record.node : evidence.uid === block.uid;
}

/**
 * Sets the block to cooling: from here on nobody gives from it. One that was never granted has been used by nobody and goes at
 * once. `changed`: it is no longer what was seen.
 */
export async function giveBack(
  { store, clock }: Pick<Context, "store" | "clock">,
  seen: Stored<"block">,
  evidence: BlockEvidence,
): Promise<"cooling" | "gone" | "changed" | "in use"> {
  if (seen.record.granted !== true) {
    return (await store.remove("block", seen)).kind === "removed" ? "gone" : "changed";
  }
  if (seen.record.releasedAt !== undefined) return "cooling";
  if (!mayGiveBack(seen, evidence)) return "in use";
  const cooling: Block = { ...seen.record, releasedAt: clock.now() };
  return (await store.replace("block", seen, cooling)).kind === "replaced" ? "cooling" : "changed";
}

/** Asks the owner to give the block back as soon as nobody uses it. */
export async function recall(
  { store, clock }: Pick<Context, "store" | "clock">,
  seen: Stored<"block">,
): Promise<void> {
  const { granted, recalledAt, releasedAt } = seen.record;
  if (granted !== true || recalledAt !== undefined || releasedAt !== undefined) return;
  await store.replace("block", seen, { ...seen.record, recalledAt: clock.now() });
}

export function firstOf({ cidr }: Block): Address {
  const { base, family } = networkOfBlock(cidr);
  return fromNumber(base, family);
}

/**
 * Deletes a block that has cooled: anybody may have its addresses. One that is divided stays for those within it. `times`: the caller's,
 * from one look to the next.
 */
export async function endCooldown(
  {
    store,
    clock,
    view,
    times = new BlockTimes(),
  }: Pick<Context, "store" | "clock" | "view"> & { readonly times?: BlockTimes },
  seen: Stored<"block">,
  isInUse: (within: Block) => boolean = () => false,
): Promise<"gone" | "cooling" | "changed" | "divided"> {
  const now = clock.now();
  const { pool, releasedAt, division } = times.of(seen, now).record;
  const cooldownMs = cooldownOf(view, { address: firstOf(seen.record), pool });
  if (releasedAt === undefined || now < releasedAt + cooldownMs) return "cooling";
  if (division !== undefined) return await endDivided(store, seen, isInUse);
  return (await store.remove("block", seen)).kind === "removed" ? "gone" : "changed";
}

/**
 * Closes the block before it looks for what is within: whoever makes a block of an address of it reads it after that was made, and finds
 * it closed, or is found here. While there is something, all addresses of it may be had.
 */
async function endDivided(
  store: Store,
  seen: Stored<"block">,
  isInUse: (within: Block) => boolean,
): Promise<"gone" | "changed" | "divided"> {
  if (isInUse(seen.record)) return await divide(store, seen, "all");
  const closed =
    seen.record.division === "closed"
      ? ({ kind: "replaced", stored: seen } as const)
      : await store.replace("block", seen, { ...seen.record, division: "closed" });
  if (closed.kind !== "replaced") return "changed";
  if (await hasSingles(store, closed.stored.record)) return await divide(store, closed.stored, "all");
  return (await store.remove("block", closed.stored)).kind === "removed" ? "gone" : "changed";
}

/** From here on addresses of it may be blocks of their own. */
export async function divide(
  store: Pick<Store, "replace">,
  seen: Stored<"block">,
  division: Exclude<Division, "closed">,
): Promise<"changed" | "divided"> {
  if (seen.record.division === division) return "divided";
  return (await store.replace("block", seen, { ...seen.record, division })).kind === "replaced"
    ? "divided"
    : "changed";
}

/** So many addresses are looked at one by one; the blocks of a larger one are listed. */
const MOST_READS = 64n;

/** Every block within it, read from the store. Another pool may have blocks of single addresses beside it: those are not of it. */
async function hasSingles(store: Store, { cidr }: Block): Promise<boolean> {
  const network = parseCidr(cidr);
  if (network === undefined) return true;
  const whole = fullInterval(network);
  if (sizeOf(whole) > MOST_READS) {
    for await (const { record } of store.list("block")) if (record.within === cidr) return true;
    return false;
  }
  for (let n = whole.first; n <= whole.last; n++) {
    const found = await store.get("block", singleOf(fromNumber(n, network.family)));
    if (found?.record.within === cidr) return true;
  }
  return false;
}
