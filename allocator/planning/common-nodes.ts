// SPDX-License-Identifier: Apache-2.0
// A pod with several addresses, of both families or on several interfaces, runs where all are routed: their pools must have nodes in
// common.

import type { Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, type Family, familyOf } from "../ip/address.ts";
import { pickFree } from "../ip/free-address.ts";
import { familiesOf, intervalsOf, type Pool } from "../pool/pool.ts";
import { quotaExceeded } from "./eligibility.ts";
import { haveCommonNodes, withoutCommonNodes } from "./node-fit.ts";
import type { AddressConstraints } from "./plan.ts";
import type { Source, WantedAny } from "./pool-sources.ts";

/**
 * The sources of which any address of one family goes with any of the other: those that go with the first of all, unless they are
 * full and others are not. What is kept decides before that.
 */
export function withCommonNodes(
  view: RecordReader,
  constraints: AddressConstraints,
  { sources, families, keep }: WantedAny,
): readonly Source[] | Refusal {
  if (families.length < 2 || sources.filter(hasNodes).length < 2) return sources;
  const kept = keep.flatMap((address) => view.poolOf(address) ?? []);
  const open = sources.filter(({ pool }) => haveCommonNodes(constraints.nodes, [...kept, pool]));
  const missing = families.filter((family) => keep.every((address) => familyOf(address) !== family));
  const refused = () => withoutCommonNodes(opposed(constraints, sources), constraints.namespace);
  if (missing.length < 2) return has(open, missing) ? open : refused();
  let group: readonly Source[] | undefined;
  for (const first of open) {
    const next = groupOf(constraints, open, [first.pool]);
    if (!has(next, missing)) continue;
    if (missing.every((family) => serves(view, constraints, next, family))) return next;
    group ??= next;
  }
  return group ?? (has(open, missing) ? refused() : open);
}

function hasNodes({ pool }: Source): boolean {
  return pool.spec.nodeSelector !== undefined;
}

/** Those that go with the first pools, and with each other: in their order. There may be hundreds of pools, but few selectors. */
function groupOf(
  { nodes }: AddressConstraints,
  sources: readonly Source[],
  first: readonly Pool[],
): readonly Source[] {
  const selecting = new Map(first.map((pool) => [selectorOf(pool), pool]));
  return sources.filter(({ pool }) => {
    const text = selectorOf(pool);
    if (selecting.has(text)) return true;
    const goes = haveCommonNodes(nodes, [...selecting.values(), pool]);
    if (goes) selecting.set(text, pool);
    return goes;
  });
}

function selectorOf(pool: Pool): string {
  return JSON.stringify(pool.spec.nodeSelector) ?? "";
}

/** What an interface may be given, of which families it lacks some. */
export interface Need {
  readonly sources: readonly Source[];
  readonly missing: readonly Family[];
}

/** So many combinations of pools are looked at, of a pod with eight interfaces and both families. */
const MOST_LOOKS = 2_000;

/**
 * The pools for several interfaces: those that go with the pools of what is named and kept, and with one for each interface, the first
 * that have free addresses and a node in common, or else the first that have the latter. Undefined: any.
 */
export function poolsForAll(
  view: RecordReader,
  constraints: AddressConstraints,
  needs: readonly Need[],
  fixed: readonly Pool[],
): ReadonlySet<Pool> | Refusal | undefined {
  const all = needs.flatMap(({ sources }) => sources);
  const selectors = new Set([...fixed, ...all.map(({ pool }) => pool)].map(selectorOf));
  selectors.delete("");
  if (selectors.size < 2) return undefined;
  const looks = { left: MOST_LOOKS };
  const columns = (isFree: boolean) =>
    needs.flatMap(({ sources, missing }) =>
      missing.map((family) =>
        sources.filter(
          (one) =>
            familiesOf(one.part).includes(family) && (!isFree || serves(view, constraints, [one], family)),
        ),
      ),
    );
  const chosen =
    choose(constraints, columns(true), fixed, looks) ?? choose(constraints, columns(false), fixed, looks);
  if (chosen === undefined)
    return looks.left > 0
      ? withoutCommonNodes(apartIn(constraints, needs, fixed), constraints.namespace, "")
      : undefined;
  return new Set([...groupOf(constraints, all, chosen).map(({ pool }) => pool), ...chosen]);
}

/** One pool of each column, by their order, that go with each other and with what is there. Undefined: there are none, or it took too long. */
function choose(
  constraints: AddressConstraints,
  columns: readonly (readonly Source[])[],
  there: readonly Pool[],
  looks: { left: number },
): readonly Pool[] | undefined {
  const [column, ...rest] = columns;
  if (column === undefined) return haveCommonNodes(constraints.nodes, there) ? there : undefined;
  const seen = new Set<string>(); // selectors
  for (const { pool } of column) {
    if (seen.has(selectorOf(pool))) continue;
    seen.add(selectorOf(pool));
    if (looks.left <= 0) return undefined;
    looks.left--;
    const chosen = [...there, pool];
    const found = haveCommonNodes(constraints.nodes, chosen)
      ? choose(constraints, rest, chosen, looks)
      : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Two pools of different interfaces that no node is of; or the first of each, if only all of them have none. */
function apartIn(
  { nodes }: AddressConstraints,
  needs: readonly Need[],
  fixed: readonly Pool[],
): readonly Pool[] {
  const columns = [
    ...fixed.map((pool) => [pool]),
    ...needs.map(({ sources }) => sources.map((one) => one.pool)),
  ];
  for (const [n, column] of columns.entries()) {
    for (const one of column) {
      const other = columns
        .slice(n + 1)
        .flat()
        .find((pool) => !haveCommonNodes(nodes, [one, pool]));
      if (other !== undefined) return [one, other];
    }
  }
  return columns
    .flatMap((column) => column.slice(0, 1))
    .filter(({ spec }) => spec.nodeSelector !== undefined);
}

function has(group: readonly Source[], families: readonly Family[]): boolean {
  return families.every((family) => group.some(({ part }) => familiesOf(part).includes(family)));
}

function serves(
  view: RecordReader,
  constraints: AddressConstraints,
  group: readonly Source[],
  family: Family,
): boolean {
  return group.some(({ pool, part }) => {
    if (pool.disabled || quotaExceeded(view, pool, constraints, { [family]: 1 }) !== undefined) return false;
    const { done } = pickFree(intervalsOf(part, family), view.unpickable(pool, family), 0n).next();
    return done !== true;
  });
}

/** Two that no node is of. */
function opposed({ nodes }: AddressConstraints, sources: readonly Source[]): readonly Pool[] {
  const pools = sources.map(({ pool }) => pool);
  for (const one of pools) {
    const other = pools.find((pool) => !haveCommonNodes(nodes, [one, pool]));
    if (other !== undefined) return [one, other];
  }
  return [];
}

/** Why no pod can run with all of these addresses. */
export function routedApart(
  view: RecordReader,
  constraints: AddressConstraints,
  addresses: readonly Address[],
): Refusal | undefined {
  const sources = addresses
    .flatMap((address) => view.poolOf(address) ?? [])
    .map((pool) => ({ pool, part: pool }));
  const pools = opposed(constraints, sources);
  return pools.length < 2 ? undefined : withoutCommonNodes(pools, constraints.namespace);
}
