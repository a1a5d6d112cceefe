// SPDX-License-Identifier: Apache-2.0
// A pod with addresses of both families runs where both are routed: their pools must have nodes in common.

import type { Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, type Family, familyOf } from "../ip/address.ts";
import { pickFree } from "../ip/free-address.ts";
import { familiesOf, intervalsOf, type Pool } from "../pool/pool.ts";
import { type EligibilityInput, quotaExceeded } from "./eligibility.ts";
import { haveCommonNodes, withoutCommonNodes } from "./node-fit.ts";
import type { Source } from "./pool-choice.ts";

export interface Wanted {
  readonly families: readonly Family[];
  /** What the claim has and keeps. */
  readonly keep: readonly Address[];
}

/**
 * The sources of which any address of one family goes with any of the other: those that go with the first of all, unless they are
 * full and others are not. What is kept decides before that.
 */
export function withCommonNodes(
  view: RecordReader,
  ask: EligibilityInput,
  sources: readonly Source[],
  { families, keep }: Wanted,
): readonly Source[] | Refusal {
  if (families.length < 2 || sources.filter(hasNodes).length < 2) return sources;
  const kept = keep.flatMap((address) => view.poolOf(address) ?? []);
  const open = sources.filter(({ pool }) => kept.every((one) => haveCommonNodes(ask.nodes, one, pool)));
  const missing = families.filter((family) => keep.every((address) => familyOf(address) !== family));
  const refused = () => withoutCommonNodes(opposed(ask, sources), ask.namespace);
  if (missing.length < 2) return has(open, missing) ? open : refused();
  let group: readonly Source[] | undefined;
  for (const first of open) {
    const next = groupOf(ask, open, first);
    if (!has(next, missing)) continue;
    if (missing.every((family) => serves(view, ask, next, family))) return next;
    group ??= next;
  }
  return group ?? (has(open, missing) ? refused() : open);
}

function hasNodes({ pool }: Source): boolean {
  return pool.spec.nodeSelector !== undefined;
}

/** Those that go with the first, and with each other: in their order. There may be hundreds of pools, but few selectors. */
function groupOf({ nodes }: EligibilityInput, sources: readonly Source[], first: Source): readonly Source[] {
  const group = new Set([first]);
  const selecting = new Map([[selectorOf(first), first]]);
  for (const source of sources) {
    const text = selectorOf(source);
    if (!selecting.has(text)) {
      const goes = [...selecting.values()].every(({ pool }) => haveCommonNodes(nodes, pool, source.pool));
      if (!goes) continue;
      selecting.set(text, source);
    }
    group.add(source);
  }
  return sources.filter((source) => group.has(source));
}

function selectorOf({ pool }: Source): string {
  return JSON.stringify(pool.spec.nodeSelector) ?? "";
}

function has(group: readonly Source[], families: readonly Family[]): boolean {
  return families.every((family) => group.some(({ part }) => familiesOf(part).includes(family)));
}

function serves(
  view: RecordReader,
  ask: EligibilityInput,
  group: readonly Source[],
  family: Family,
): boolean {
  return group.some(({ pool, part }) => {
    if (pool.disabled || quotaExceeded(view, pool, ask, { [family]: 1 }) !== undefined) return false;
    const { done } = pickFree(intervalsOf(part, family), view.unpickable(pool, family), 0n).next();
    return done !== true;
  });
}

/** Two that no node is of. */
function opposed({ nodes }: EligibilityInput, sources: readonly Source[]): readonly Pool[] {
  const pools = sources.map(({ pool }) => pool);
  for (const one of pools) {
    const other = pools.find((pool) => !haveCommonNodes(nodes, one, pool));
    if (other !== undefined) return [one, other];
  }
  return [];
}

/** Why no pod can run with all of these addresses. */
export function routedApart(
  view: RecordReader,
  ask: EligibilityInput,
  addresses: readonly Address[],
): Refusal | undefined {
  const sources = addresses
    .flatMap((address) => view.poolOf(address) ?? [])
    .map((pool) => ({ pool, part: pool }));
  const pools = opposed(ask, sources);
  return pools.length < 2 ? undefined : withoutCommonNodes(pools, ask.namespace);
}
