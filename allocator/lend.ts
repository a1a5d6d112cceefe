// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { beingDeleted, isAtRest, PROMISE_MS } from "./bind.ts";
import { type Binding, type Claim, claimKey } from "./claim.ts";
import { type Context, MAX_ROUNDS } from "./context.ts";
import { isRefusal, type Refusal, type RefusalCode, refuse } from "./errors.ts";
import type { Inventory } from "./inventory.ts";
import { type Preview, preview } from "./preview.ts";
import { rely } from "./reap.ts";
import { type Intent, type Reserved, reserve } from "./reserve.ts";
import { gatherFacts, judge } from "./retention.ts";
import type { Stored } from "./store/store.ts";

/**
 * Promises one free slot of a set to the pod that is being admitted: the first whose addresses nobody else has and
 * whose last pod is gone. The slots' claims stay when pods go; only their promise moves on.
 */
export async function lendSlot(
  context: Context,
  inventory: Inventory,
  slots: readonly Intent[],
): Promise<Reserved | Refusal> {
  const obstacles = new Map<Intent, Refusal>(); // slot -> why not that one
  for (const intent of likelyFreeFirst(context, slots)) {
    const got = await lendOne(context, inventory, intent);
    if (got.kind === "reserved") return got;
    if (!PASSING.has(got.code)) return got;
    obstacles.set(intent, got);
  }
  return usedUp(slots, obstacles);
}

/** A slot refused for one of these leaves the others to try. */
const PASSING: ReadonlySet<RefusalCode> = new Set(["CLAIM_BUSY", "ADDRESS_TAKEN", "CLAIM_RELEASING"]);

/**
 * A set has as many claims to read as it has slots, and most of them are in use: those that look free in the view go
 * first, each group in the order of the list. Which one is free is settled with the authority all the same.
 */
function likelyFreeFirst({ view, clock }: Context, slots: readonly Intent[]): readonly Intent[] {
  const looksFree = ({ key, ask }: Intent) => {
    const claim = view.claim(claimKey(key))?.record;
    if (claim?.deleting === true) return false;
    if (claim === undefined) {
      const holders = (ask.entry ?? []).map((address) => view.reservation(address)?.record.claim ?? key);
      return holders.every((holder) => claimKey(holder) === claimKey(key));
    }
    const { binding } = claim;
    if (binding === undefined) return true;
    return binding.node === "" ? clock.now() - binding.since >= PROMISE_MS : isAtRest(claim);
  };
  const { free = [], others = [] } = Object.groupBy(slots, (slot) => (looksFree(slot) ? "free" : "others"));
  return [...free, ...others];
}

function usedUp(slots: readonly Intent[], met: ReadonlyMap<Intent, Refusal>): Refusal {
  const obstacles = slots.flatMap((slot) => met.get(slot) ?? []);
  const only = slots[0]?.identity.slot === undefined ? obstacles[0] : undefined;
  if (only !== undefined) return only;
  const why = obstacles.slice(0, 4).map((obstacle) => obstacle.message);
  return refuse(
    "SET_EXHAUSTED",
    `all ${slots.length} entries of the set are in use: ${why.join("; ")}; add entries for replicas and maxSurge, or lower them`,
    { namespace: slots[0]?.key.namespace ?? "" },
  );
}

/** What `lendSlot` would answer now; writes nothing. */
export async function previewSlot(
  context: Context,
  inventory: Inventory,
  slots: readonly Intent[],
): Promise<Preview | Refusal> {
  const obstacles = new Map<Intent, Refusal>(); // slot -> why not that one
  for (const intent of likelyFreeFirst(context, slots)) {
    const before = await context.store.get("claim", claimKey(intent.key));
    const free = before === undefined || (await isFree(context, inventory, before));
    const got = free ? await preview(context, intent) : busy(before.record);
    if (!isRefusal(got) || !PASSING.has(got.code)) return got;
    obstacles.set(intent, got);
  }
  return usedUp(slots, obstacles);
}

async function lendOne(context: Context, inventory: Inventory, intent: Intent): Promise<Reserved | Refusal> {
  const key = claimKey(intent.key);
  const before = await context.store.get("claim", key);
  if (before !== undefined && !(await isFree(context, inventory, before))) return busy(before.record);
  const { promise, ...plain } = intent;
  const instead = before?.record.binding?.token ?? "";
  const got = await reserve(context, before === undefined ? intent : { ...plain, instead });
  if (isRefusal(got) || promise === undefined) return got;
  if (got.claim.record.binding?.token === promise.token) return got;
  return await promiseFree(context, inventory, got, promise);
}

/** `reserve` answers from the view, which may lag, and the reaper may take the last promise back at this moment. */
async function promiseFree(
  context: Context,
  inventory: Inventory,
  got: Reserved,
  promise: Binding,
): Promise<Reserved | Refusal> {
  let seen = got.claim;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (seen.record.releasing === true || !(await isFree(context, inventory, seen))) break;
    const lent = await promiseTo(context, seen, promise);
    if (lent !== undefined) return { ...got, claim: lent };
    const now = await context.store.get("claim", seen.key);
    if (now === undefined || now.revision === seen.revision) break;
    // another pod of the set asked for others meanwhile
    if (!isDeepStrictEqual(now.record.addresses, got.claim.record.addresses)) break;
    seen = now;
  }
  return busy(seen.record);
}

/** Nobody has the slot, or the pod that had it is gone and so is its sandbox. */
async function isFree(
  context: Context,
  inventory: Inventory,
  { record, createdAt }: Stored<"claim">,
): Promise<boolean> {
  if (record.deleting === true) return false;
  if (record.binding === undefined) return true;
  const facts = await gatherFacts(record, inventory);
  // Its Deployment may be back before the reaper saw that: what was set aside is wanted now.
  const { retained: _, ...wanted } = record;
  const verdict = judge(wanted, { ...facts, owner: "needed" }, createdAt, context.clock.now());
  return verdict.kind === "unpromise";
}

async function promiseTo(
  context: Context,
  seen: Stored<"claim">,
  binding: Binding,
): Promise<Stored<"claim"> | undefined> {
  for (const address of seen.record.addresses) {
    if (!(await rely(context.store, address, seen.record.nonce))) return undefined;
  }
  const result = await context.store.replace("claim", seen, { ...seen.record, binding });
  return result.kind === "replaced" ? result.stored : undefined;
}

function busy(claim: Claim): Refusal {
  if (claim.deleting === true) return beingDeleted(claim);
  const key = claimKey(claim);
  const { binding } = claim;
  const pod = binding?.podName ?? "";
  const who = pod === "" ? `a pod that was admitted less than ${PROMISE_MS / 1000} s ago` : `pod ${pod}`;
  return refuse("CLAIM_BUSY", `${claim.addresses.join(",")} (${claim.name}) is lent to ${who}`, {
    claim: key,
    pod,
  });
}
