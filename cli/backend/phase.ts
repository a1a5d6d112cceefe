// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/model/claim.ts";
import { phaseOf } from "../../allocator/model/phase.ts";

/** Where a claim stands, for people, who want to know first that a claim is on its way out. */
export function describePhase(claim: Claim): string {
  if (claim.releasing === true) return "Releasing";
  return claim.deleting === true ? "Deleting" : phaseOf(claim);
}
