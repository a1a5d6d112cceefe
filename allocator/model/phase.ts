// SPDX-License-Identifier: Apache-2.0
import { type Claim, type ClaimPhase, isBound } from "./claim.ts";

/**
 * Where a claim stands. It is not stored: each change of it would be a write for each pod (ADR 0042).
 *
 * | Pending  | made by hand, no addresses yet       | Attached | a sandbox uses the addresses                   |
 * | Reserved | nobody has it                        | Detached | its pod's sandbox was seen to end              |
 * | Held     | held for a pod, not yet on a node  | Retained | its owner is gone, retention keeps the addresses |
 * | Bound    | bound to a pod on a node              |
 */
export function phaseOf(claim: Claim): ClaimPhase {
  const { binding, retained, status } = claim;
  if (claim.nonce === "") return "Pending";
  if (status.attachment?.detached === false) return "Attached";
  if (retained !== undefined) return "Retained";
  if (isBound(claim)) return status.attachment?.podUID === binding?.podUID ? "Detached" : "Bound";
  return binding === undefined ? "Reserved" : "Held";
}
