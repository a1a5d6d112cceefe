// SPDX-License-Identifier: Apache-2.0
import { isAtRest, PROMISE_MS } from "./bind.ts";
import { type Claim, type Identity, isBound } from "./claim.ts";
import type { Inventory, WorkloadFacts } from "./inventory.ts";

/** What is known, at one moment, of what a claim is kept for. */
export interface OwnerFacts {
  /**
   * - `needed`: the owner exists and wants this identity.
   * - `scaled`: the owner exists and does not want it now.
   * - `deleted`: the owner is gone.
   * - `unborn`: nobody used the claim yet and no owner was ever seen.
   */
  readonly owner: "needed" | "scaled" | "deleted" | "unborn";
  /** The pod that the claim is promised or bound to exists. */
  readonly podExists: boolean;
  /** The node that it is lent to will never run a pod again: nobody is left there to say that it is detached. */
  readonly fenced?: boolean;
}

export type Verdict =
  | { readonly kind: "keep" }
  | { readonly kind: "release"; readonly reason: "deleted" | "scaled" | "expired" | "never-came" }
  /** Nobody needs the identity now and its addresses stay: the ttl runs from here. */
  | { readonly kind: "retain"; readonly because: "deleted" | "scaled" }
  /** The owner wants it again. */
  | { readonly kind: "unretain" }
  /** The pod that it was promised to never came, or is gone: the next one may have it. */
  | { readonly kind: "unpromise" };

const KEEP: Verdict = { kind: "keep" };

/**
 * What becomes of a claim (invariants 5 and 6). Nothing is let go while a sandbox may be alive, and a pod's own
 * deletion releases nothing as long as its owner wants the identity.
 *
 * | owner   | decided by  | verdict                                                          |
 * |---------|-------------|------------------------------------------------------------------|
 * | needed  |             | keep; a slot's promise to a pod that never came is taken back    |
 * | scaled  | whenScaled  | release, or retain until the ttl                                 |
 * | deleted | whenDeleted | release, or retain until the ttl; so too a slot that the list has lost |
 * | unborn  | 120 s       | release: the pod was refused later, or never created             |
 *
 * A claim that somebody deleted is released as soon as no sandbox can have its addresses, whoever wants it.
 */
export function judge(claim: Claim, facts: OwnerFacts, createdAt: number, now: number): Verdict {
  if (claim.releasing === true) return KEEP;
  if (claim.deleting === true) return rests(claim, facts) ? { kind: "release", reason: "deleted" } : KEEP;
  if (claim.handMade === true || claim.nonce === "") return KEEP;
  if (facts.owner === "needed") return judgeNeeded(claim, facts, now);
  if (facts.podExists || !rests(claim, facts)) return KEEP;
  if (facts.owner === "unborn") {
    const since = Math.max(createdAt, claim.admittedAt ?? 0);
    return now - since < PROMISE_MS ? KEEP : { kind: "release", reason: "never-came" };
  }
  return judgeUnneeded(claim, facts.owner, now);
}

function judgeUnneeded({ retention, retained }: Claim, because: "scaled" | "deleted", now: number): Verdict {
  const choice = because === "scaled" ? retention.whenScaled : retention.whenDeleted;
  if (choice === "Release") return { kind: "release", reason: because };
  if (retained === undefined) return { kind: "retain", because };
  const { ttlMs } = retention;
  return ttlMs !== null && now - retained.since >= ttlMs ? { kind: "release", reason: "expired" } : KEEP;
}

function judgeNeeded(claim: Claim, facts: OwnerFacts, now: number): Verdict {
  if (claim.retained !== undefined) return { kind: "unretain" };
  const { binding } = claim;
  if (binding === undefined || facts.podExists || binding.token === "") return KEEP;
  const over = isBound(claim) ? rests(claim, facts) : now - binding.since >= PROMISE_MS;
  return over ? { kind: "unpromise" } : KEEP;
}

/** No sandbox can have its addresses (invariant 3, a and b). */
function rests(claim: Claim, { fenced }: OwnerFacts): boolean {
  return isAtRest(claim) || fenced === true;
}

/**
 * The facts from the authority. The claim must have been read before its owner: an owner that comes to be in between
 * is seen, and one that goes is judged next time.
 */
export async function gatherFacts(claim: Claim, inventory: Inventory): Promise<OwnerFacts> {
  // Whom a promise is for is not known before its pod appears; a pod of the claim's own name is somebody else.
  const podName = claim.binding === undefined ? claim.name : claim.binding.podName;
  const pod = podName === "" ? undefined : await inventory.pod(claim.namespace, podName);
  const uid = claim.binding?.podUID ?? "";
  const podExists = pod !== undefined && (uid === "" || uid === pod.uid);
  const owner = await ownerState(claim, inventory, pod !== undefined);
  const fenced = !isAtRest(claim) && (await inventory.fenced(claim.binding?.node ?? ""));
  return { owner, podExists, fenced };
}

async function ownerState(
  claim: Claim,
  inventory: Inventory,
  podThere: boolean,
): Promise<OwnerFacts["owner"]> {
  const { identity, namespace } = claim;
  const used = isBound(claim) || claim.retained !== undefined || claim.status.attachment !== undefined;
  if (identity.kind !== "StatefulSet" && identity.kind !== "Deployment") {
    if (podThere) return "needed";
    return used ? "deleted" : "unborn";
  }
  const workload = await inventory.workload(identity.kind, namespace, identity.name);
  if (workload === "unknown") return podThere || used ? "needed" : "unborn";
  return workload === undefined ? "deleted" : neededBy(workload, identity);
}

/** What the workload, which exists, wants of the identity. An entry that the list of a set has lost is nobody's any more; an ordinal may come back. */
export function neededBy(
  { start, replicas, slots }: WorkloadFacts,
  { ordinal, slot }: Pick<Identity, "ordinal" | "slot">,
): "needed" | "scaled" | "deleted" {
  if (slot !== undefined && slots !== undefined && slot >= slots) return "deleted";
  const wanted = ordinal === undefined || (ordinal >= start && ordinal < start + replicas);
  return wanted ? "needed" : "scaled";
}
