// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import { sameSet } from "../../../allocator/base/same-set.ts";
import type { RecordReader } from "../../../allocator/cache/reader.ts";
import { ownReader } from "../../../allocator/demand/foreign-pools.ts";
import type { PoolView } from "../../../allocator/demand/own-interfaces.ts";
import { asksForOtherThan } from "../../../allocator/demand/unreviewed-pod.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import {
  type BindingEvidence,
  type BindTarget,
  isDetached,
  planBind,
} from "../../../allocator/lifecycle/bind.ts";
import { isUpWith } from "../../../allocator/lifecycle/up-with.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../../allocator/manifest/annotations.ts";
import {
  type ClaimRef,
  claimRefsFor,
  doesWithout,
  matchesRef,
} from "../../../allocator/manifest/pod-claim.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { ClusterState } from "../../../allocator/model/cluster-state.ts";
import type { Dialects } from "../../../allocator/model/dialect.ts";
import { formatHolding, parseAddresses } from "../../../allocator/model/interfaces.ts";
import { keptForOtherNodes } from "../../../allocator/planning/node-fit.ts";
import { matches } from "../../../allocator/pool/label-selector.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";

/** What to do for a pod, as far as the cache can tell. */
export type BindDecision =
  /** Bound already, or not the binder's to bind. */
  | { readonly kind: "settled" }
  /** Wait until one of these claims changes, or the pod or node that it is bound to. */
  | {
      readonly kind: "waits";
      readonly claims: readonly string[];
      readonly refusal: Refusal;
      /** The pod's claim is gone, or has to be changed to the addresses that the pod was admitted with: the binder does that. */
      readonly settles: boolean;
    }
  /** The claim is held for the pod by its token. It is bound later, once the pod is scheduled or has waited for long. */
  | { readonly kind: "early"; readonly claim: Stored<"claim">; readonly afterMs: number }
  | { readonly kind: "due"; readonly claim: Stored<"claim">; readonly target: BindTarget };

/** What the decision rests on: the records, evidence about a claim's binding, and the time. */
interface DecisionInput {
  readonly view: Pick<RecordReader, "claim"> & PoolView;
  /** Which requests in other systems' words are for Berth; absent: all. */
  readonly dialects?: Dialects | undefined;
  /** What is known of workloads: where the ordinals of a StatefulSet begin. */
  readonly inventory: Pick<ClusterState, "workload">;
  /** A node's labels; undefined while the node is not known. Absent: nodes are not looked at. */
  readonly nodeLabels?: (node: string) => Labels | undefined;
  readonly cachedEvidence: (claim: Claim, target: BindTarget) => Promise<BindingEvidence>;
  readonly now: number;
}

/** How long an unscheduled pod waits before it is bound by its token. Most are scheduled by then, which saves a write. */
export const RESOLVE_TOKEN_AFTER_MS = 10_000;

const SETTLED: BindDecision = { kind: "settled" };

/** Decides from the cache alone; the binder checks against the store when it writes. */
export async function decideBinding(pod: ObservedPod, input: DecisionInput): Promise<BindDecision> {
  if (pod.exempt || pod.deleting || pod.ended) return SETTLED;
  const claimRefs = claimRefsFor(pod, pod.annotations);
  const ref = claimRefs.find((each) => hasClaim(each, input.view));
  const claim = ref && input.view.claim(ref.key);
  if (claim === undefined) return withoutClaim(pod, claimRefs);
  if (doesWithout(pod.annotations, claim.record, pod.up, ownReader(input))) return SETTLED;
  const target = bindTargetOf(pod, ref?.token ?? "");
  const own = formatHolding(claim.record);
  const { assigned = own } = target;
  if (pod.node === "" && ref?.token === "" && sameSet(assigned, own))
    return await keptByName(claim, pod, input);
  const plan = planBind(claim.record, target, await input.cachedEvidence(claim.record, target), input.now);
  if (isRefusal(plan)) {
    const settles = plan.code === "CLAIM_CHANGED" && isDetached(claim.record);
    return { kind: "waits", claims: [claim.key], refusal: plan, settles };
  }
  if (plan.kind === "bound") return SETTLED;
  const unfit = onNodeOfNoPool(claim.record, pod, input) ?? (await notWhatItAsks(claim.record, pod, input));
  if (unfit !== undefined) return waitsFor(claim, unfit);
  const afterMs = pod.node === "" ? untilTokenIsResolved(claim.record, input.now) : 0;
  // what the decision is about goes along as `assigned`: a claim that has other addresses by now is not bound
  return afterMs > 0
    ? { kind: "early", claim, afterMs }
    : { kind: "due", claim, target: { ...target, assigned } };
}

/** A pod without a token keeps its claim by its name: nothing is bound until it has a node. */
async function keptByName(
  claim: Stored<"claim">,
  pod: ObservedPod,
  input: DecisionInput,
): Promise<BindDecision> {
  const other = await notWhatItAsks(claim.record, pod, input);
  return other === undefined ? SETTLED : waitsFor(claim, other);
}

/** Until somebody else changes the claim, or the pod. */
function waitsFor({ key }: Stored<"claim">, refusal: Refusal): BindDecision {
  return { kind: "waits", claims: [key], refusal, settles: false };
}

/**
 * Refuses a pod on a node that the address's pool is not for, where it could not be reached: a pod that passed no review may be on any
 * node. A pod that is up with the address is bound whatever the labels say now: the claim has to record who has it.
 */
function onNodeOfNoPool(
  claim: Claim,
  pod: ObservedPod,
  { view, nodeLabels }: DecisionInput,
): Refusal | undefined {
  const { node, namespace } = pod;
  const labels = nodeLabels?.(node);
  if (labels === undefined || isUpWith(claim, reportedOf(pod))) return undefined;
  for (const address of claim.addresses) {
    const pool = view.poolOf(address);
    if (pool !== undefined && !matches(pool.spec.nodeSelector, labels))
      return keptForOtherNodes(pool, address, { namespace, node });
  }
  return undefined;
}

/**
 * Refuses a pod whose request is for other addresses than the claim's, unless it is up with them: then it has them, whatever was written
 * into it since.
 */
async function notWhatItAsks(
  claim: Claim,
  pod: ObservedPod,
  input: DecisionInput,
): Promise<Refusal | undefined> {
  if (isUpWith(claim, reportedOf(pod))) return undefined;
  const { view, inventory } = input;
  return await asksForOtherThan(
    claim,
    { ...pod, generateName: "" },
    { view, inventory, own: ownReader(input) },
  );
}

/** What the pod's status says that it has. */
export function reportedOf({ addresses = "" }: Pick<ObservedPod, "addresses">): ReadonlySet<Address> {
  return new Set(parseAddresses(addresses.split(",")).addresses);
}

function hasClaim(ref: ClaimRef, view: DecisionInput["view"]): boolean {
  const claim = view.claim(ref.key);
  return claim !== undefined && matchesRef(ref, claim.record);
}

/**
 * The claim that the pod was admitted with may not be in the cache yet, or be another pod's by now. A pod without one has nothing to bind.
 */
function withoutClaim(pod: ObservedPod, claimRefs: readonly ClaimRef[]): BindDecision {
  const named = pod.annotations[ASSIGNED_CLAIM];
  if (named === undefined) return SETTLED;
  const claim = `${pod.namespace}/${named}`;
  const refusal = refuse(
    "CLAIM_MISSING",
    `claim ${claim}, with which pod ${pod.name} was admitted, is gone or kept for another pod by now; delete the pod and create it again`,
    { claim, pod: pod.name },
  );
  const claims = [...new Set([claim, ...claimRefs.map(({ key }) => key)])];
  return { kind: "waits", claims, refusal, settles: true };
}

function bindTargetOf({ name, uid, node, annotations }: ObservedPod, token: string): BindTarget {
  const assigned = annotations[ASSIGNED_ADDRESSES]?.split(",");
  return { name, uid, node, token, ...(assigned === undefined ? {} : { assigned }) };
}

/** How long binding a hold waits yet. Clocks of hosts differ: one that begins in the future waits no longer than one that begins now. */
function untilTokenIsResolved({ binding }: Claim, now: number): number {
  return Math.min(RESOLVE_TOKEN_AFTER_MS, RESOLVE_TOKEN_AFTER_MS - (now - (binding?.since ?? 0)));
}
