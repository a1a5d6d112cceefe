// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, type RefusalCode, refuse } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { AllocationRequest, Reserved } from "../lifecycle/allocation-request.ts";
import { deletionPending, isDetached } from "../lifecycle/bind.ts";
import { ensureReliable } from "../lifecycle/block-conflict.ts";
import { nameConflict, namesake } from "../lifecycle/claim-conflicts.ts";
import { HOLD_TIMEOUT_MS, isHoldExpired } from "../lifecycle/hold.ts";
import { reserve } from "../lifecycle/reserve.ts";
import { decideRetention, observeOwner } from "../lifecycle/retention.ts";
import { unbind } from "../lifecycle/unbind.ts";
import { type Binding, type Claim, claimKey, isBound } from "../model/claim.ts";
import type { ClusterState } from "../model/cluster-state.ts";
import { MAX_ATTEMPTS } from "../store/retry-on-conflict.ts";
import type { Stored } from "../store/store.ts";
import { type DryRunResult, dryRun } from "./allocation-dry-run.ts";
import { ownReader } from "./foreign-pools.ts";
import { slotsExhausted } from "./slots-exhausted.ts";

/**
 * Promises one free slot of a set to the pod that is being admitted: the first whose addresses nobody else has and
 * whose last pod is gone. The slots' claims stay when pods go; only their hold moves on.
 */
export async function allocateSlot(
  context: Context,
  inventory: ClusterState,
  slots: readonly AllocationRequest[],
): Promise<Reserved | Refusal> {
  const { fit, refusals } = sorted(slots);
  for (const group of inGrowingGroups(context, fit)) {
    const looks =
      group.length === 1 ? [] : group.map((allocation) => inspectSlot(context, inventory, allocation));
    await Promise.allSettled(looks); // a claim that cannot be read is no matter where one before it is free
    for (const [at, allocation] of group.entries()) {
      const got = await context.serial.run(lockOf(allocation), async () =>
        allocateOne(context, inventory, allocation, await looks[at]),
      );
      if (got.kind === "reserved") return got;
      if (!RETRYABLE.has(got.code)) return got;
      refusals.set(allocation, got);
    }
  }
  return slotsExhausted(slots, refusals);
}

interface Sorted {
  readonly fit: readonly AllocationRequest[];
  /** slot -> why not that one */
  readonly refusals: Map<AllocationRequest, Refusal>;
}

/** One that the pod cannot have is not held for it: it would be refused, and the slot kept from others until the hold is over. */
function sorted(slots: readonly AllocationRequest[]): Sorted {
  const refusals = new Map<AllocationRequest, Refusal>();
  for (const slot of slots) if (slot.unfit !== undefined) refusals.set(slot, slot.unfit);
  return { fit: slots.filter((slot) => !refusals.has(slot)), refusals };
}

/** So many slots are looked at together at most. */
const MOST_AT_ONCE = 16;

/**
 * The first slot alone, for it is free almost always; then ever more at a time, for pods of a set come together, and each
 * of them looks past what those before it were given a moment ago. Where another review of this process is at a slot,
 * that one goes last: pods that come together would all wait for their turn at the first, then at the second.
 */
function* inGrowingGroups(
  context: Context,
  slots: readonly AllocationRequest[],
): Generator<readonly AllocationRequest[]> {
  const isTried = (slot: AllocationRequest) => context.serial.isBusy(lockOf(slot));
  let left = slots;
  for (let size = 1; left.length > 0; size = Math.min(2 * size, MOST_AT_ONCE)) {
    const group = new Set(likelyFreeFirst(context, left, isTried).slice(0, size));
    left = left.filter((slot) => !group.has(slot));
    yield [...group];
  }
}

function lockOf({ key }: AllocationRequest): string {
  return `slot ${claimKey(key)}`;
}

/** A slot refused for one of these leaves the others to try. */
const RETRYABLE: ReadonlySet<RefusalCode> = new Set([
  "CLAIM_BUSY",
  "ADDRESS_TAKEN",
  "CLAIM_RELEASING",
  "NODE_MISMATCH", // of a DaemonSet each pod is for a node of its own
]);

/**
 * A set has as many claims to read as it has slots, and most of them are in use: those that look free in the view go
 * first, each group in the order of the list. The store still decides which one is free.
 */
function likelyFreeFirst(
  { view, clock }: Context,
  slots: readonly AllocationRequest[],
  isTried: (slot: AllocationRequest) => boolean = () => false,
): readonly AllocationRequest[] {
  const looksFree = ({ key, constraints }: AllocationRequest) => {
    const claim = view.claim(claimKey(key))?.record;
    if (claim?.deleting === true) return false;
    if (claim === undefined) {
      const holders = (constraints.addresses ?? []).map(
        (address) => view.reservation(address)?.record.claim ?? key,
      );
      return holders.every((holder) => claimKey(holder) === claimKey(key));
    }
    const { binding } = claim;
    if (binding === undefined) return true;
    return binding.node === "" ? clock.now() - binding.since >= HOLD_TIMEOUT_MS : isDetached(claim);
  };
  const { free = [], others = [] } = Object.groupBy(slots, (slot) => (looksFree(slot) ? "free" : "others"));
  const { idle = [], tried = [] } = Object.groupBy(free, (slot) => (isTried(slot) ? "tried" : "idle"));
  return [...idle, ...tried, ...others];
}

/** What `allocateSlot` would answer now; writes nothing. */
export async function dryRunSlot(
  context: Context,
  inventory: ClusterState,
  slots: readonly AllocationRequest[],
): Promise<DryRunResult | Refusal> {
  const { fit, refusals } = sorted(slots);
  for (const allocation of likelyFreeFirst(context, fit)) {
    const { before, free } = await inspectSlot(context, inventory, allocation);
    const got =
      before === undefined || free ? await dryRun(context, allocation) : busy(before.record, allocation);
    if (!isRefusal(got) || !RETRYABLE.has(got.code)) return got;
    refusals.set(allocation, got);
  }
  return slotsExhausted(slots, refusals);
}

/** Of what its last pod needed no more the garbage collector may let go at this moment: then it is reserved anew. */
async function allocateOne(
  context: Context,
  inventory: ClusterState,
  allocation: AllocationRequest,
  first: SlotState | undefined,
): Promise<Reserved | Refusal> {
  let look = first ?? (await inspectSlot(context, inventory, allocation));
  for (let round = 0; ; round++) {
    const got = await tryAllocate(context, inventory, allocation, look);
    if (got.kind !== "released") return got;
    if (round === MAX_ATTEMPTS) return busy(got.claim, allocation);
    look = await inspectSlot(context, inventory, allocation);
  }
}

/** A slot's claim as the store has it, if it has one, and whether the slot is free. */
interface SlotState {
  readonly before: Stored<"claim"> | undefined;
  readonly free: boolean;
}

async function inspectSlot(
  context: Context,
  inventory: ClusterState,
  allocation: AllocationRequest,
): Promise<SlotState> {
  const before = await context.store.get("claim", claimKey(allocation.key));
  return { before, free: before === undefined || (await isSlotFree(context, inventory, before)) };
}

async function tryAllocate(
  context: Context,
  inventory: ClusterState,
  allocation: AllocationRequest,
  { before, free }: SlotState,
): Promise<Reserved | Refusal | Released> {
  if (before !== undefined && !free) return busy(before.record, allocation);
  const { hold, ...plain } = allocation;
  const replacesToken = before?.record.binding?.token ?? "";
  const got = await reserve(
    context,
    before === undefined ? allocation : { ...plain, replacesToken },
    "nothing",
  );
  if (isRefusal(got) || hold === undefined) return got;
  if (got.claim.record.binding?.token === hold.token) return got;
  return await holdFree(context, inventory, got, { ...allocation, hold });
}

interface Released {
  readonly kind: "released";
  /** As it was. */
  readonly claim: Claim;
}

/** `reserve` answers from the view, which may lag, and the garbage collector may take the last hold back at this moment. */
async function holdFree(
  context: Context,
  inventory: ClusterState,
  got: Reserved,
  allocation: AllocationRequest & { readonly hold: Binding },
): Promise<Reserved | Refusal | Released> {
  let seen = got.claim;
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    if (seen.record.releasing === true) return { kind: "released", claim: seen.record };
    const free = await isSlotFree(context, inventory, seen);
    const bound = free ? await holdFor(context, seen, allocation.hold) : undefined;
    if (bound !== undefined) return { ...got, claim: bound, waits: true };
    const now = await context.store.get("claim", seen.key);
    if (now === undefined) return { kind: "released", claim: seen.record };
    if (now.revision === seen.revision) break;
    // another pod of the set asked for others meanwhile
    if (!isDeepStrictEqual(now.record.addresses, got.claim.record.addresses)) break;
    seen = now;
  }
  return busy(seen.record, allocation);
}

/** Nobody has the slot, or the pod that had it is gone and so is its sandbox. */
async function isSlotFree(
  context: Context,
  inventory: ClusterState,
  { record, createdAt }: Stored<"claim">,
): Promise<boolean> {
  if (record.deleting === true) return false;
  const { binding } = record;
  if (binding === undefined) return true;
  if (!isBound(record) && context.clock.now() - binding.since < HOLD_TIMEOUT_MS)
    return await isGone(inventory, record, binding);
  const facts = await observeOwner(record, inventory, ownReader(context));
  // Its Deployment may be back before the garbage collector saw that: what was set aside is wanted now. And what a person made is
  // kept whatever becomes of its pods, but it is bound to one after the other like any.
  const { retained: _, handMade: __, ...wanted } = record;
  const verdict = decideRetention(wanted, { ...facts, owner: "needed" }, createdAt, context.clock.now());
  return verdict.kind === "release-hold";
}

/**
 * Whether the pod of a hold was met in the cluster and is there no more: no node can have had the claim for it. One that nobody has met may
 * be on its way, and on one host a pod is named before it is kept: nobody need be asked for these.
 */
async function isGone(
  inventory: ClusterState,
  { namespace }: Claim,
  { podName, podUID, since }: Binding,
): Promise<boolean> {
  if (podUID === "" || inventory.admittedWith === undefined) return false;
  const pod = await inventory.pod(namespace, podName);
  return isHoldExpired({ podUID, since }, pod, since);
}

async function holdFor(
  context: Context,
  seen: Stored<"claim">,
  binding: Binding,
): Promise<Stored<"claim"> | undefined> {
  for (const address of seen.record.addresses) {
    if (!(await ensureReliable(context, address, seen.record.nonce))) return undefined;
  }
  return await unbind(context, seen, { binding });
}

/**
 * Nobody comes with the token of the hold, for whoever was to be told it has been refused meanwhile. What somebody has changed since is
 * not this hold's any more.
 */
export async function giveHoldBack(
  context: Pick<Context, "store" | "clock">,
  held: Stored<"claim">,
): Promise<void> {
  const { binding } = held.record;
  if (binding?.node === "" && binding.podUID === "") await unbind(context, held);
}

function busy(claim: Claim, { identity }: AllocationRequest): Refusal {
  if (nameConflict(claim, identity)) return namesake(claim, identity);
  if (claim.deleting === true) return deletionPending(claim);
  const key = claimKey(claim);
  const { binding } = claim;
  const pod = binding?.podName ?? "";
  const who = pod === "" ? `a pod that was admitted less than ${HOLD_TIMEOUT_MS / 1000} s ago` : `pod ${pod}`;
  return refuse("CLAIM_BUSY", `${claim.addresses.join(",")} (${claim.name}) is bound to ${who}`, {
    claim: key,
    pod,
  });
}
