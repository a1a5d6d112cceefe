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
  /** The node of the binding will never run its pods again: no sandbox of it is alive (invariant 3b). */
  readonly fenced?: true;
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
 */
export function judge(claim: Claim, facts: OwnerFacts, createdAt: number, now: number): Verdict {
  if (claim.releasing === true || claim.handMade === true || claim.nonce === "") return KEEP;
  if (facts.owner === "needed") return judgeNeeded(claim, facts, now);
  if (facts.podExists || !isOver(claim, facts)) return KEEP;
  if (facts.owner === "unborn") {
    const since = Math.max(createdAt, claim.admittedAt ?? 0);
    return now - since < PROMISE_MS ? KEEP : { kind: "release", reason: "never-came" };
  }
  const choice = facts.owner === "scaled" ? claim.retention.whenScaled : claim.retention.whenDeleted;
  if (choice === "Release") return { kind: "release", reason: facts.owner };
  if (claim.retained === undefined) return { kind: "retain", because: facts.owner };
  const { ttlMs } = claim.retention;
  return ttlMs !== null && now - claim.retained.since >= ttlMs
    ? { kind: "release", reason: "expired" }
    : KEEP;
}

/** Nobody's sandbox can have the addresses any more. */
function isOver(claim: Claim, { fenced }: OwnerFacts): boolean {
  return fenced === true || isAtRest(claim);
}

function judgeNeeded(claim: Claim, facts: OwnerFacts, now: number): Verdict {
  if (claim.retained !== undefined) return { kind: "unretain" };
  const { binding } = claim;
  if (binding === undefined || facts.podExists || binding.token === "") return KEEP;
  const over = isBound(claim) ? isOver(claim, facts) : now - binding.since >= PROMISE_MS;
  return over ? { kind: "unpromise" } : KEEP;
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
  const fenced = isBound(claim) && (await inventory.fenced(claim.binding?.node ?? ""));
  const facts = { owner: await ownerState(claim, inventory, pod !== undefined), podExists };
  return fenced ? { ...facts, fenced } : facts;
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

/** An entry that the list of a set has lost is nobody's any more; an ordinal may come back. */
function neededBy(
  { start, replicas, slots }: WorkloadFacts,
  { ordinal, slot }: Identity,
): OwnerFacts["owner"] {
  if (slot !== undefined && slots !== undefined && slot >= slots) return "deleted";
  const wanted = ordinal === undefined || (ordinal >= start && ordinal < start + replicas);
  return wanted ? "needed" : "scaled";
}
