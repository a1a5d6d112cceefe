// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import { sameSet } from "../base/same-set.ts";
import type { Context } from "../cache/context.ts";
import {
  type Binding,
  type Claim,
  type ClaimAttachment,
  claimKey,
  isBound,
  isKeptByOthers,
} from "../model/claim.ts";
import { formatHolding } from "../model/interfaces.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Stored } from "../store/store.ts";
import {
  addressesChanged,
  boundElsewhere,
  claimMissing,
  heldForAnother,
  keptForAnother,
  sandboxNotEnded,
} from "./bind-refusals.ts";
import { ensureReliable } from "./block-conflict.ts";
import { namedFinalizers } from "./release.ts";

/** The pod that wants its claim. `node` is empty while it is not scheduled; `token` as its annotation says. */
export interface BindTarget {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly token: string;
  readonly interface?: string;
  /** The sandbox that is going up; absent while there is none. */
  readonly containerID?: string;
  /** Where that one can be seen. */
  readonly seenAt?: Pick<ClaimAttachment, "netns" | "bootID">;
  /** What its agent says of that one when the claim, bound to it, is as it needs it: written with the binding, if the store can. */
  readonly attachedTo?: (bound: Claim) => ClaimAttachment | undefined;
  /** The addresses that it was admitted with, as its annotation `berth.dev/addresses` has them; absent when it does not say. */
  readonly assigned?: readonly string[];
}

/** What decides whether a binding may move away from the pod that has it. */
export interface BindingEvidence {
  /** The node of the present binding will never run its pods again. */
  readonly fenced: boolean;
  /** The pod of the present hold is known to be gone, or never came in its time. */
  readonly holdExpired: boolean;
  /** The pod of the present binding, of another name, is there and has not ended. Absent: nobody looked. */
  readonly holderThere?: boolean;
  /** Nodes are hosts that share an etcd: who reads a refusal there knows of no Node, and has containers. */
  readonly onHosts?: boolean;
}

export type BindPlan =
  | { readonly kind: "bound" }
  | { readonly kind: "bind"; readonly binding: Binding }
  | Refusal;

/**
 * Whether the claim may be bound to the pod (invariant 3 of CONTRIBUTING.md; its letters stand in the table).
 *
 * | bound to now        | wanted by     | answer                                                              |
 * |---------------------|---------------|---------------------------------------------------------------------|
 * | nobody              | anyone        | bind                                                                |
 * | a hold, same token  | its pod       | bind                                                                |
 * | a hold, other token | another pod   | only when the hold has expired                                      |
 * | pod A on X          | A on X        | bound already                                                       |
 * | pod A on X          | another token | never: the slot is A's by a later admission                         |
 * | pod A on X          | B on X        | bind: X's agent takes A's sandbox down before it sets B's up (c)    |
 * | pod A on X          | B on Y        | only when X's agent said that A is detached (a), or X is fenced (b) |
 *
 * A claim that is being deleted stays with the pod that it is bound to, and is bound to nobody else.
 * While A, of another name than B, is known to be there, only fencing moves it: a copy of a pod's token gains nothing.
 */
export function planBind(claim: Claim, pod: BindTarget, evidence: BindingEvidence, now: number): BindPlan {
  const unfit = notBindable(claim, pod);
  if (unfit !== undefined) return unfit;
  // Never before the admission that it follows, though another process's clock, a second ahead, may have said when that was.
  const binding = bindingOf(pod, Math.max(now, claim.admittedAt ?? 0));
  const current = claim.binding;
  if (current === undefined) return { kind: "bind", binding };
  if (isWith(current, pod)) return { kind: "bound" };
  if (current.node === "") return holdConflict(claim, current, pod, evidence) ?? { kind: "bind", binding };
  if (isOfAnotherToken(current, pod)) return keptForAnother(claim, pod.name);
  if (evidence.fenced) return { kind: "bind", binding };
  if (evidence.holderThere === true) return boundElsewhere(claim, current);
  if (current.node === pod.node || detached(claim)) return { kind: "bind", binding };
  return sandboxNotEnded(claim, current, evidence.onHosts === true);
}

/** Slots move by a hold that admission writes, with the next pod's token in it: what is bound with another token is not this pod's any more. */
function isOfAnotherToken(current: Binding, pod: BindTarget): boolean {
  return current.token !== "" && pod.token !== "" && current.token !== pod.token;
}

/** Why the claim is not for the pod, whoever has it now. */
function notBindable(claim: Claim, pod: BindTarget): Refusal | undefined {
  const key = claimKey(claim);
  if (isKeptByOthers(claim)) return deletionPending(claim);
  if (claim.releasing === true) {
    const words = `the addresses of claim ${key} are being given back; try again in a moment`;
    return refuse("CLAIM_RELEASING", words, { claim: key });
  }
  if (claim.nonce === "") {
    const words = `claim ${key} has no addresses yet: ${claim.status.message ?? "not reserved"}`;
    return refuse("CLAIM_MISSING", words, { claim: key });
  }
  if (pod.assigned !== undefined && !sameSet(pod.assigned, formatHolding(claim))) {
    return addressesChanged(claim, pod.name, pod.assigned);
  }
  const stays = isBound(claim) && claim.binding !== undefined && isWith(claim.binding, pod);
  return claim.deleting === true && !stays ? deletionPending(claim) : undefined;
}

/** The words for a claim that somebody deleted and that is not gone yet; `finalizers` of it, where they are known. */
export function deletionPending(claim: Claim, finalizers: readonly string[] = []): Refusal {
  const key = claimKey(claim);
  if (isKeptByOthers(claim)) {
    const whose = finalizers.length === 0 ? "somebody else's" : namedFinalizers(finalizers);
    const words = `the addresses of claim ${key} were given back, and its record stays for a finalizer (${whose}); whoever set that has to take it away`;
    return refuse("CLAIM_RELEASING", words, { claim: key });
  }
  const { podName = "", node = "" } = claim.binding ?? {};
  const why = isDetached(claim)
    ? "try again in a moment"
    : `its addresses are given back when the sandbox of pod ${podName} on node ${node} has ended; try again then`;
  return refuse("CLAIM_RELEASING", `claim ${key} is being deleted; ${why}`, { claim: key });
}

function bindingOf(pod: BindTarget, since: number): Binding {
  const where = pod.interface === undefined ? {} : { interface: pod.interface };
  return { token: pod.token, podName: pod.name, podUID: pod.uid, node: pod.node, ...where, since };
}

function holdConflict(
  claim: Claim,
  hold: Binding,
  pod: BindTarget,
  evidence: BindingEvidence,
): Refusal | undefined {
  const its = hold.token === pod.token && (hold.podUID === "" || samePod(hold, pod));
  if (its || hold.token === "" || evidence.holdExpired) return undefined;
  return heldForAnother(claim, hold);
}

function isWith(binding: Binding, pod: BindTarget): boolean {
  return samePod(binding, pod) && binding.node === pod.node;
}

function samePod(binding: Binding, pod: BindTarget): boolean {
  return binding.podName === pod.name && (binding.podUID === pod.uid || pod.uid === "");
}

/** The agent of its node saw the sandbox of the present binding end. */
function detached(claim: Claim): boolean {
  const { attachment } = claim.status;
  return attachment?.detached === true && attachment.podUID === claim.binding?.podUID;
}

/** Nobody's sandbox can have the claim's addresses: its request may change, and it may be released. */
export function isDetached(claim: Claim): boolean {
  return !isBound(claim) || detached(claim);
}

/**
 * Binds the claim to the pod. Reads the store, makes sure that every reservation may be relied on, then
 * compares and sets. A claim that was seen before, given instead of its key, saves that read if it has not changed.
 * Throws REVISION_CONFLICT when the claim keeps changing.
 */
export async function bind(
  context: Context,
  claim: string | Stored<"claim">,
  pod: BindTarget,
  evidence: (claim: Claim) => Promise<BindingEvidence>,
): Promise<Stored<"claim"> | Refusal> {
  const key = typeof claim === "string" ? claim : claim.key;
  const soon = typeof claim === "string" ? undefined : await bindSeen(context, claim, pod, evidence);
  if (soon !== undefined) return soon;
  return await retryOnConflict(context.store, { kind: "claim", key, doing: "it was bound" }, async (seen) => {
    if (seen === undefined) return claimMissing(key);
    const plan = planBind(seen.record, pod, await evidence(seen.record), context.clock.now());
    if (isRefusal(plan)) return plan;
    if (!(await verifyReservations(context, seen.record))) return claimMissing(key);
    const bound = plan.kind === "bound" ? seen : await writeBinding(context, seen, plan.binding, pod);
    return (bound && (await markAttached(context, bound, pod))) ?? "conflict";
  });
}

/** Undefined: it did not come to a compare-and-set, which alone proves that the claim still is as it was seen. */
async function bindSeen(
  context: Context,
  seen: Stored<"claim">,
  pod: BindTarget,
  evidence: (claim: Claim) => Promise<BindingEvidence>,
): Promise<Stored<"claim"> | undefined> {
  const plan = planBind(seen.record, pod, await evidence(seen.record), context.clock.now());
  if (isRefusal(plan) || plan.kind === "bound" || !(await verifyReservations(context, seen.record)))
    return undefined;
  const bound = await writeBinding(context, seen, plan.binding, pod);
  return bound && (await markAttached(context, bound, pod));
}

/**
 * Read from the store after the claim was seen: what is unmarked then, the garbage collector finds relied on, and
 * what is in no node's block stays so.
 */
async function verifyReservations(context: Context, { addresses, nonce }: Claim): Promise<boolean> {
  for (const address of addresses) {
    if (!(await ensureReliable(context, address, nonce))) return false;
  }
  return true;
}

async function writeBinding(
  context: Context,
  seen: Stored<"claim">,
  binding: Binding,
  { attachedTo }: BindTarget,
): Promise<Stored<"claim"> | undefined> {
  const { retained: _, ...rest } = seen.record;
  const attachment = attachedTo?.({ ...rest, binding });
  if (attachment !== undefined && context.store.replaceClaim !== undefined) {
    const status = { phase: "Attached", attachment } as const;
    const attached = await context.store.replaceClaim(seen, { ...rest, binding, status });
    return attached.kind === "replaced" ? attached.stored : undefined;
  }
  const result = await context.store.replace("claim", seen, { ...rest, binding });
  return result.kind === "replaced" ? result.stored : undefined;
}

/**
 * The same pod again, whose last sandbox was seen to end: until the next one is reported the claim looks at rest, and
 * might be changed or released under it. Undefined: somebody changed the claim.
 */
async function markAttached(
  context: Context,
  seen: Stored<"claim">,
  { containerID, interface: name, seenAt }: BindTarget,
): Promise<Stored<"claim"> | undefined> {
  const { attachment } = seen.record.status;
  if (containerID === undefined || attachment === undefined || !detached(seen.record)) return seen;
  const since = context.clock.now();
  const { netns: _, bootID: __, ...last } = attachment;
  const next = {
    ...last,
    ...seenAt,
    containerID,
    interface: name ?? attachment.interface,
    since,
    detached: false,
  };
  const result = await context.store.report(seen, { attachment: next });
  return result.kind === "replaced" ? result.stored : undefined;
}
