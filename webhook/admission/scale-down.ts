// SPDX-License-Identifier: Apache-2.0

import { shortDuration } from "../../allocator/base/go-duration.ts";
import { listed } from "../../allocator/base/listed.ts";
import { poolsContaining, type RecordReader } from "../../allocator/cache/reader.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { type KubeObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import type { WorkloadState } from "../../allocator/model/cluster-state.ts";
import { endOfOrdinals } from "../../allocator/model/ordinals.ts";
import { mostRetainedBy } from "../../allocator/pool/namespace-bounds.ts";
import type { Pool } from "../../allocator/pool/pool.ts";

type View = Pick<RecordReader, "claims" | "poolOf">;

/** Claims that are named; a set may lose hundreds of ordinals. */
const NAMED = 5;

/** What becomes of the addresses of the ordinals that a StatefulSet loses by this change, a line for each. */
export function warningsOfScaleDown(view: View, before: KubeObject, now: KubeObject): string[] {
  return warningsOfLostOrdinals(view, workloadState(before), workloadState(now));
}

export function warningsOfLostOrdinals(view: View, was: WorkloadState, is: WorkloadState): string[] {
  if (endOfOrdinals(was) <= endOfOrdinals(is) && was.start >= is.start) return [];
  const lost = claimsOfOrdinals(view, is).filter(
    ({ identity }) => neededBy(was, identity) === "needed" && neededBy(is, identity) === "scaled",
  );
  const beyond = beyondLimits(view, lost);
  const limited = new Set(beyond.flatMap(({ claims }) => claims));
  const warnings = lost.filter((claim) => !limited.has(claim)).map((claim) => consequenceOf(view, claim));
  return [...beyond.map(inWords), ...firstOf(warnings)];
}

/** In their order, without those that a person made or that are being given back. */
export function claimsOfOrdinals(view: Pick<View, "claims">, of: WorkloadState): readonly Claim[] {
  const claims: Claim[] = [];
  for (const { record } of view.claims(of)) {
    const { identity, namespace } = record;
    const its = identity.kind === of.kind && identity.name === of.name && namespace === of.namespace;
    const counts = record.releasing !== true && record.handMade !== true;
    if (its && counts && identity.ordinal !== undefined) claims.push(record);
  }
  return claims.sort((a, b) => (a.identity.ordinal ?? 0) - (b.identity.ordinal ?? 0));
}

/** Claims that a pool does not keep all of (`limits.retention.perNamespace`): which stay is settled when their pods go. */
interface Beyond {
  readonly pool: Pool;
  /** More that it keeps. */
  readonly room: number;
  readonly claims: readonly Claim[];
}

function beyondLimits(view: View, lost: readonly Claim[]): readonly Beyond[] {
  const byPool = new Map<Pool, Claim[]>(); // pool -> those that are to be kept
  for (const claim of lost) {
    const pools = poolsContaining(view, claim.addresses);
    if (!isKept(claim, pools) || claim.retained !== undefined) continue;
    for (const pool of pools) byPool.set(pool, [...(byPool.get(pool) ?? []), claim]);
  }
  return [...byPool].flatMap(([pool, claims]) => {
    const [{ namespace = "" } = {}] = claims;
    const room = Math.max(0, mostRetainedBy(namespace, pool.retention) - retainedIn(view, pool, namespace));
    return claims.length > room ? [{ pool, room, claims }] : [];
  });
}

function retainedIn(view: View, pool: Pool, namespace: string): number {
  let count = 0;
  for (const { record } of view.claims("retained"))
    if (record.retained !== undefined && record.namespace === namespace)
      if (poolsContaining(view, record.addresses).includes(pool)) count++;
  return count;
}

function inWords({ pool, room, claims }: Beyond): string {
  const names = listed(
    claims.map(({ name }) => name),
    NAMED,
  );
  const most = `pool ${pool.name} keeps ${room === 0 ? "no" : room} more of namespace ${claims[0]?.namespace} by its limits.retention.perNamespace`;
  const but = room === 0 ? "" : `, but for ${room} of them,`;
  return `${most}: the addresses of ${names}${but} are given back once their pods are gone`;
}

/** A line each for the first few of what is told of a set's claims. */
export function firstOf(warnings: readonly string[]): string[] {
  const more = warnings.length - NAMED;
  return more > 0
    ? [...warnings.slice(0, NAMED), `and so for ${more} more; see: berthctl get claims`]
    : [...warnings];
}

function isKept({ retention }: Claim, pools: readonly Pool[]): boolean {
  return retention.whenScaled !== "Release" && allowedTtlMs(retention, pools) !== 0;
}

function consequenceOf(view: Pick<View, "poolOf">, claim: Claim): string {
  const { name, addresses, retention } = claim;
  const what = addresses.join(", ");
  const pools = poolsContaining(view, claim.addresses);
  if (!isKept(claim, pools)) return `${name} gives ${what} back once its pod is gone`;
  const ttlMs = allowedTtlMs(retention, pools);
  const until = ttlMs === null ? "until it is released" : `for ${shortDuration(ttlMs)} after its pod is gone`;
  return `${name} keeps ${what} ${until}; to give it back then: berthctl release ${claimKey(claim)}`;
}
