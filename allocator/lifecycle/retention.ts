// SPDX-License-Identifier: Apache-2.0

import { sameSet } from "../base/same-set.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../manifest/annotations.ts";
import { doesWithout, type OwnReader } from "../manifest/pod-claim.ts";
import { type Claim, isBound } from "../model/claim.ts";
import { workloadOf } from "../model/claim-workload.ts";
import { type ClusterState, namespaceOf, type PodState, type WorkloadRef } from "../model/cluster-state.ts";
import { formatHolding } from "../model/interfaces.ts";
import { isFollowed } from "../model/workload-kinds.ts";
import type { Stored } from "../store/store.ts";
import { isDetached } from "./bind.ts";
import { hadPodOrIsRetained, isDeclined, isEntryDeclined, isWaitingFor, neededBy } from "./claim-owner.ts";
import { HOLD_TIMEOUT_MS } from "./hold.ts";

/** What is known, at one moment, of what a claim is kept for. */
export interface OwnerState {
  /**
   * - `needed`: the owner exists and wants this identity.
   * - `scaled`: the owner exists and does not want it now.
   * - `deleted`: the owner is gone.
   * - `unseen`: nobody used the claim yet and no owner was ever seen.
   */
  readonly owner: "needed" | "scaled" | "deleted" | "unseen";
  /** A pod exists and has not ended that the claim is held for, is bound to or, once what it is bound to is gone, is to be bound to. */
  readonly podLives: boolean;
  /** The owner cannot be seen now, and is taken for one that needs it: that releases nothing, and proves nothing. */
  readonly isGuessed?: boolean;
  /** The node that it is bound to will never run a pod again: nobody is left there to say that it is detached. */
  readonly fenced?: boolean;
}

export type RetentionDecision =
  | {
      readonly kind: "keep";
      /** Time alone changes nothing of that: see `isSettled`. */
      readonly isSettled?: true;
    }
  | {
      readonly kind: "release";
      readonly reason: "deleted" | "scaled" | "expired" | "never-came";
      /** Which limit of its pool lets it go although it asks to be kept, in words. */
      readonly because?: string;
    }
  /** Nobody needs the identity now and its addresses stay: the ttl runs from here. */
  | { readonly kind: "retain"; readonly because: "deleted" | "scaled" }
  /** The owner wants it again. */
  | { readonly kind: "unretain" }
  /** The pod that it was held for never came, or is gone: the next one may have it. */
  | { readonly kind: "release-hold" };

const KEEP: RetentionDecision = { kind: "keep" };

/**
 * What becomes of a claim (invariants 5 and 6). Nothing is let go while a sandbox may be alive, and a pod's own
 * deletion releases nothing as long as its owner wants the identity.
 *
 * | owner   | decided by  | verdict                                                          |
 * |---------|-------------|------------------------------------------------------------------|
 * | needed  |             | keep; a slot's hold for a pod that never came is taken back      |
 * | scaled  | whenScaled  | release, or retain until the ttl                                 |
 * | deleted | whenDeleted | release, or retain until the ttl; so too a slot that the list has lost; |
 * |         |             | a slot of an owner that is not read is released                  |
 * | unseen  | 120 s       | release: the pod was refused later, or never created             |
 *
 * Whoever the owner is, what is held for a pod stays its own for 120 s. A pod that has ended needs nothing, once
 * its sandbox is known to be gone: its phase is no proof of that. A claim that somebody deleted is released as soon as
 * no sandbox can have its addresses, whoever wants it.
 */
export function decideRetention(
  claim: Claim,
  facts: OwnerState,
  createdAt: number,
  now: number,
): RetentionDecision {
  if (claim.releasing === true) return KEEP;
  if (claim.deleting === true) return isUnused(claim, facts) ? { kind: "release", reason: "deleted" } : KEEP;
  if (claim.handMade === true || claim.nonce === "") return KEEP;
  if (facts.owner === "needed") return judgeNeeded(claim, facts, now);
  if (facts.podLives || !isUnused(claim, facts)) return KEEP;
  const since = heldSince(claim, facts, createdAt);
  if (since !== undefined && now - since < HOLD_TIMEOUT_MS) return KEEP;
  if (facts.owner === "unseen") return { kind: "release", reason: "never-came" };
  return judgeUnneeded(claim, facts.owner, now);
}

/**
 * Whether a claim that is kept now is kept at any time, unless something changes that is heard of (`ClusterState.onChange`), or its
 * node is fenced. What is retained is not: how long depends on others, too (`RetentionLimits`).
 */
export function isSettled({ record, createdAt }: Stored<"claim">, facts: OwnerState): boolean {
  const { retained, releasing, binding } = record;
  if (retained !== undefined || releasing === true || facts.isGuessed === true) return false;
  // whose pod is found by its token alone
  if (binding?.podName === "") return false;
  return decideRetention(record, facts, createdAt, Number.POSITIVE_INFINITY).kind === "keep";
}

/** When a claim is released whose pod was admitted and is not there, if none comes; undefined: it is no such claim. */
export function waitsUntil(claim: Claim, facts: OwnerState, createdAt: number): number | undefined {
  const isKept = claim.handMade === true || claim.nonce === "" || claim.deleting === true;
  if (isKept || claim.releasing === true || facts.owner !== "unseen") return undefined;
  if (facts.podLives || !isUnused(claim, facts)) return undefined;
  const since = heldSince(claim, facts, createdAt);
  return since === undefined ? undefined : since + HOLD_TIMEOUT_MS;
}

/** Since when it waits for a pod that was admitted and has not come; undefined: it waits for none. */
function heldSince(claim: Claim, { owner }: OwnerState, createdAt: number): number | undefined {
  const { binding, admittedAt = 0 } = claim;
  const heldSince = binding?.node === "" ? binding.since : undefined;
  // one that was never used may be held anew: to a Job's next pod, when the first has ended before it had a sandbox
  if (owner === "unseen") return Math.max(createdAt, admittedAt, heldSince ?? 0);
  if (heldSince !== undefined) return heldSince;
  // admitted again, for the next pod of the name
  return binding !== undefined && admittedAt > binding.since ? admittedAt : undefined;
}

function judgeUnneeded(
  { identity, retention, retained }: Claim,
  because: "scaled" | "deleted",
  now: number,
): RetentionDecision {
  // what owns the slot is not read: whether it is gone or only this pod of it is not known, so nothing is kept for it
  if (identity.slot !== undefined && !isFollowed(identity.apiVersion, identity.kind))
    return { kind: "release", reason: "deleted" };
  const choice = because === "scaled" ? retention.whenScaled : retention.whenDeleted;
  if (choice === "Release") return { kind: "release", reason: because };
  if (retained === undefined) return { kind: "retain", because };
  const { ttlMs } = retention;
  return ttlMs !== null && now - retained.since >= ttlMs ? { kind: "release", reason: "expired" } : KEEP;
}

function judgeNeeded(claim: Claim, facts: OwnerState, now: number): RetentionDecision {
  if (claim.retained !== undefined) return { kind: "unretain" };
  const { binding } = claim;
  if (binding === undefined || facts.podLives || binding.token === "") return KEEP;
  const over = isBound(claim) ? isUnused(claim, facts) : now - binding.since >= HOLD_TIMEOUT_MS;
  return over ? { kind: "release-hold" } : KEEP;
}

/** No sandbox can have its addresses (invariant 3, a and b). */
function isUnused(claim: Claim, { fenced }: OwnerState): boolean {
  return isDetached(claim) || fenced === true;
}

/**
 * The facts from the store. The claim must have been read before its owner: an owner that comes to be in between
 * is seen, and one that goes is judged next time.
 */
export async function observeOwner(
  claim: Claim,
  inventory: ClusterState,
  own: OwnReader,
): Promise<OwnerState> {
  const found = await podOf(claim, inventory);
  const pod =
    found !== undefined && (isNamesakeOnly(found, claim, own) || isKeptFrom(found, claim))
      ? undefined
      : found;
  const isHolder = [pod?.uid, undefined, ""].includes(claim.binding?.podUID);
  const podLives = isAlive(pod) && (isHolder || isWaitingFor(pod, claim, own));
  const { owner, isGuessed = false } = await ownerState(claim, inventory, { pod, namesake: found, own });
  const fenced = !isDetached(claim) && (await inventory.fenced(claim.binding?.node ?? ""));
  return { owner, podLives, fenced, ...(isGuessed ? { isGuessed } : {}) };
}

/** Until its pod was met, only the token says whom a hold is for; a pod of the claim's own name is another one. */
async function podOf(
  { namespace, name, binding }: Claim,
  inventory: ClusterState,
): Promise<PodState | undefined> {
  const { podName, token } = binding ?? { podName: name, token: "" };
  if (podName !== "") return await inventory.pod(namespace, podName);
  return token === "" ? undefined : await inventory.admittedWith?.(namespace, token);
}

/**
 * The pod has the claim's name and not the claim. It was given another one at its admission: a second create of a
 * Deployment's pod, without its owner, is refused by the API server and leaves a claim of the name. Or it was given none
 * and asks for none, and the claim is of another pod of the name: of a second create, or of one that came and went while
 * this one was between its reviews. It would take the claim if it started now, and nothing is held for it.
 */
function isNamesakeOnly({ uid, annotations }: PodState, claim: Claim, own: OwnReader): boolean {
  const { podUID } = claim.binding ?? {};
  const given = annotations[ASSIGNED_CLAIM];
  if (uid === podUID) return false;
  if (given !== undefined) return given !== claim.name;
  return podUID !== "" && doesWithout(annotations, claim, true, own);
}

/**
 * What is retained stays with its workload, and the pod, which the workload does not own, was told other addresses: it is refused until the
 * claim is gone, so that the retention runs out although it is there (`isKeptForOwner`).
 */
function isKeptFrom({ uid, annotations }: PodState, claim: Claim): boolean {
  const assigned = annotations[ASSIGNED_ADDRESSES];
  if (claim.retained === undefined || workloadOf(claim) === undefined || assigned === undefined) return false;
  return uid !== claim.binding?.podUID && !sameSet(assigned.split(","), formatHolding(claim));
}

function isAlive(pod: PodState | undefined): pod is PodState {
  return pod?.ended === false;
}

async function ownerState(
  claim: Claim,
  inventory: ClusterState,
  {
    pod,
    namesake,
    own,
  }: {
    readonly pod: PodState | undefined;
    readonly namesake: PodState | undefined;
    readonly own: OwnReader;
  },
): Promise<Pick<OwnerState, "owner" | "isGuessed">> {
  const ref = workloadOf(claim);
  if (ref === undefined) return { owner: stateByPod(claim, pod) };
  const workload = await inventory.workload(ref);
  if (workload === undefined) return { owner: "deleted" };
  if (typeof workload === "string") {
    const byPod = stateByPod(claim, pod);
    const owner = stateWithout(workload, ref, byPod);
    return { owner, isGuessed: owner !== byPod && owner === "needed" };
  }
  const owner = neededBy(workload, claim.identity);
  if (owner !== "needed" || (namesake === undefined && claim.identity.slot === undefined)) return { owner };
  const template = { workload, namespace: await namespaceOf(inventory, claim.namespace), own };
  const isWithout = namesake !== undefined && isDeclined(claim, namesake, template);
  return isWithout || isEntryDeclined(claim, template) ? { owner: "deleted" } : { owner };
}

/**
 * Of a workload that cannot be looked at. One that nobody applied on this host may never come, and pods of its name may be
 * there all the same, one after the other: an address is kept from one to the next for as long as its retention says.
 */
function stateWithout(
  workload: "unknown" | "never admitted",
  { kind }: WorkloadRef,
  byPod: "needed" | "deleted" | "unseen",
): OwnerState["owner"] {
  // of a Job only the pods can be seen, as of what is not read at all
  if (byPod !== "deleted" || kind === "Job") return byPod;
  return workload === "unknown" ? "needed" : "scaled";
}

function stateByPod(claim: Claim, pod: PodState | undefined): "needed" | "deleted" | "unseen" {
  if (isAlive(pod)) return "needed";
  return hadPodOrIsRetained(claim) ? "deleted" : "unseen";
}
