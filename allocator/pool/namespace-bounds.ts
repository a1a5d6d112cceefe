// SPDX-License-Identifier: Apache-2.0
import type { Family } from "../ip/address.ts";
import { type AddressSpace, capacity } from "./address-space.ts";
import type { LabelSelector } from "./label-selector.ts";
import type { PoolSpec } from "./pool-spec.ts";

/** Numbers of addresses. */
export type ByFamily = Readonly<Partial<Record<Family, number>>>;

/**
 * The most that one namespace may have of a pool (ADR 0010): of both families together, as the pool's author says; or of one
 * family, because the rest is left to others by default.
 */
export type Bound =
  | { readonly kind: "said"; readonly most: number }
  | { readonly kind: "share"; readonly most: number; readonly family: Family; readonly size: number };

/** Of each family; of fewer than ten addresses nothing. */
const LEFT_TO_OTHERS = 10n;
/** Of the addresses of the smallest family; of a small pool so many. */
const RETAINED_SHARE = 0.25;
const LEAST_RETAINED = 16;
/** The label that every namespace has. */
const NAME_LABEL = "kubernetes.io/metadata.name";

/** A bound that the whole pool cannot reach is none. */
export function boundsOf(
  space: AddressSpace,
  { limits, namespaceSelector }: Pick<PoolSpec, "limits" | "namespaceSelector">,
): readonly Bound[] {
  const sizes = space.families.map((family) => ({ family, size: capacity(space, family) }));
  const most = limits?.perNamespace;
  if (most !== undefined) {
    const all = sizes.reduce((sum, { size }) => sum + size, 0n);
    return BigInt(most) < all ? [{ kind: "said", most }] : [];
  }
  if (onlyNamespace(namespaceSelector) !== undefined) return [];
  return sizes.flatMap(({ family, size }): Bound[] => {
    const left = size / LEFT_TO_OTHERS;
    return left === 0n ? [] : [{ kind: "share", most: Number(size - left), family, size: Number(size) }];
  });
}

/** The most claims that one namespace may keep which nothing needs (ADR 0010). */
export interface RetainedBound {
  readonly perNamespace: number;
  /** Of the one namespace that the pool is for; absent: it is for several, or says how many itself. */
  readonly alone?: { readonly namespace: string; readonly most: number };
}

/**
 * By default the namespace that has the pool for itself may keep all: a workload that is scaled away as a whole finds every address again,
 * and takes nothing from anybody. What others have of the pool, which was for them as well before, they would keep from that one.
 */
export function mostRetained(
  space: AddressSpace,
  { limits, namespaceSelector }: Pick<PoolSpec, "limits" | "namespaceSelector">,
): RetainedBound {
  const given = limits?.retention?.perNamespace;
  if (given !== undefined) return { perNamespace: given };
  const sizes = space.families.map((family) => Number(capacity(space, family)));
  const perNamespace = Math.max(LEAST_RETAINED, Math.floor(Math.min(...sizes) * RETAINED_SHARE));
  const namespace = onlyNamespace(namespaceSelector);
  if (namespace === undefined) return { perNamespace };
  // each of its claims may have one address, of whichever family
  return { perNamespace, alone: { namespace, most: sizes.reduce((sum, size) => sum + size, 0) } };
}

export function mostRetainedBy(namespace: string, { perNamespace, alone }: RetainedBound): number {
  return alone?.namespace === namespace ? alone.most : perNamespace;
}

/** The selector names one namespace: there are no others to leave anything to. */
function onlyNamespace({ matchLabels = {}, matchExpressions }: LabelSelector = {}): string | undefined {
  if (Object.hasOwn(matchLabels, NAME_LABEL)) return matchLabels[NAME_LABEL];
  const naming = matchExpressions?.find(({ key, operator }) => key === NAME_LABEL && operator === "In");
  return naming?.values?.length === 1 ? naming.values[0] : undefined;
}

/** What counts towards the bound. */
export function countedBy(bound: Bound, { IPv4 = 0, IPv6 = 0 }: ByFamily): number {
  if (bound.kind === "said") return IPv4 + IPv6;
  return bound.family === "IPv4" ? IPv4 : IPv6;
}

/** What a namespace keeps from others: what its claims hold, and what cools after their release until the record is gone. */
export interface Use {
  readonly held: ByFamily;
  readonly cooling: ByFamily;
}

/**
 * The most that may be held and cool together. Of a limit that the author says twice as much: all pods of a namespace may be
 * replaced at once, whose addresses cool beside those of their successors. What is left to others is left in any case.
 */
export function mostWithCooling(bound: Bound): number {
  return bound.kind === "said" ? 2 * bound.most : bound.most;
}

/** How many more the bound allows; below 0: it is passed. */
export function roomWithin(bound: Bound, { held, cooling }: Use): number {
  const holds = countedBy(bound, held);
  return Math.min(bound.most - holds, mostWithCooling(bound) - holds - countedBy(bound, cooling));
}
