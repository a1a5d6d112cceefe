// SPDX-License-Identifier: Apache-2.0

import { shortDuration } from "../../allocator/base/go-duration.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { type KubeObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import type { WorkloadState } from "../../allocator/model/cluster-state.ts";
import { endOfOrdinals } from "../../allocator/model/ordinals.ts";

/** Claims that are named; a set may lose hundreds of ordinals. */
const NAMED = 5;

/** What becomes of the addresses of the ordinals that a StatefulSet loses by this change, a line for each. */
export function warningsOfScaleDown(
  view: Pick<RecordReader, "claims" | "poolOf">,
  before: KubeObject,
  now: KubeObject,
): string[] {
  return warningsOfLostOrdinals(view, workloadState(before), workloadState(now));
}

export function warningsOfLostOrdinals(
  view: Pick<RecordReader, "claims" | "poolOf">,
  was: WorkloadState,
  is: WorkloadState,
): string[] {
  if (endOfOrdinals(was) <= endOfOrdinals(is) && was.start >= is.start) return [];
  const lost: Claim[] = [];
  for (const { record } of view.claims(is)) {
    const { identity, namespace } = record;
    const its = identity.kind === is.kind && identity.name === is.name && namespace === is.namespace;
    if (!its || record.releasing === true || record.handMade === true || identity.ordinal === undefined)
      continue;
    if (neededBy(was, identity) === "needed" && neededBy(is, identity) === "scaled") lost.push(record);
  }
  const warnings = lost
    .toSorted((a, b) => (a.identity.ordinal ?? 0) - (b.identity.ordinal ?? 0))
    .map((claim) => consequenceOf(view, claim));
  return firstOf(warnings);
}

/** A line each for the first few of what is told of a set's claims. */
export function firstOf(warnings: readonly string[]): string[] {
  const more = warnings.length - NAMED;
  return more > 0
    ? [...warnings.slice(0, NAMED), `and so for ${more} more; see: berthctl get claims`]
    : [...warnings];
}

function consequenceOf(view: Pick<RecordReader, "poolOf">, claim: Claim): string {
  const { name, addresses, retention } = claim;
  const what = addresses.join(", ");
  if (retention.whenScaled === "Release") return `${name} gives ${what} back once its pod is gone`;
  const pools = addresses.flatMap((address) => view.poolOf(address) ?? []);
  const ttlMs = allowedTtlMs(retention, pools);
  const until = ttlMs === null ? "until it is released" : `for ${shortDuration(ttlMs)} after its pod is gone`;
  return `${name} keeps ${what} ${until}; to give it back then: berthctl release ${claimKey(claim)}`;
}
