// SPDX-License-Identifier: Apache-2.0
// Which pools may serve a request, in which order, and of which families.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, FAMILIES, type Family } from "../ip/address.ts";
import type { AddressSpace } from "../pool/address-space.ts";
import { familiesOf, type Pool, rangeOf } from "../pool/pool.ts";
import { selectsSome } from "../pool/pool-choice.ts";
import { isOnNetwork, otherNetwork } from "../pool/pool-networks.ts";
import { hasMacsAlone } from "../pool/special-addresses.ts";
import { ineligibility } from "./eligibility.ts";
import { keptElsewhere, nodeFits, onOtherNodes } from "./node-fit.ts";
import type { AddressConstraints } from "./plan.ts";
import { givesMacsAlone, noFamily, noPool, unknownPool } from "./refusal-messages.ts";

/** A pool, and which of its ranges may serve: all of them, or those of the CIDR that the request names. */
export interface Source {
  readonly pool: Pool;
  readonly part: AddressSpace;
}

/** What is asked for by no name: of which pools, of which families, and what of that is there already. */
export interface WantedAny {
  readonly sources: readonly Source[];
  readonly families: readonly Family[];
  readonly keep: readonly Address[];
}

/**
 * Named pools in the order of their naming, else every open pool by priority. Those that the pod could not use, because it may
 * run on none of their nodes, are passed over; those that have no node for it now come last.
 */
export function sourcesFor(view: RecordReader, constraints: AddressConstraints): readonly Source[] | Refusal {
  const sources =
    constraints.pools === undefined
      ? openSources(view, constraints)
      : namedSources(view, constraints, constraints.pools);
  return isRefusal(sources) || constraints.nodes === undefined
    ? sources
    : onItsNodes(view, constraints, sources);
}

function onItsNodes(
  view: RecordReader,
  { nodes, namespace, ownAddresses = [] }: AddressConstraints,
  sources: readonly Source[],
): readonly Source[] | Refusal {
  const pools = sources.map(({ pool }) => pool);
  const fits = nodeFits(nodes, pools);
  const having = (fit: (typeof fits)[number]) => sources.filter((_, i) => fits[i] === fit);
  const elsewhere = having("never");
  for (const address of ownAddresses) {
    const source = elsewhere.find(({ part }) => isIn(part, address));
    if (source !== undefined && view.poolOf(address) === source.pool)
      return keptElsewhere(source.pool, address, namespace);
  }
  if (elsewhere.length === sources.length) return onOtherNodes(pools, namespace);
  return [...having("now"), ...having("later")];
}

function openSources(view: RecordReader, constraints: AddressConstraints): readonly Source[] | Refusal {
  const open: Source[] = [];
  const closed: (() => Refusal)[] = [];
  for (const pool of view.pools()) {
    const keeps = keepsOf(view, pool, constraints);
    const why =
      ineligibility(view, pool, constraints, keeps) ??
      (keeps ? undefined : networkUnknown(pool, constraints));
    if (why === undefined) open.push({ pool, part: pool });
    else closed.push(why);
  }
  const isOnIts = (pool: Pool) => pool.spec.networks !== undefined && constraints.networks !== undefined;
  const order = ({ pool }: Source) => (isOnIts(pool) ? -1 : rank(pool));
  if (open.length > 0) return open.sort((a, b) => b.pool.priority - a.pool.priority || order(a) - order(b));
  const [only] = closed;
  return only !== undefined && closed.length === 1 ? only() : noPool(view, constraints.namespace);
}

/** Of one priority, behind those that name its network: those that say whom they are for, then the default, then the others. */
function rank(pool: Pool): number {
  if (selectsSome(pool)) return 0;
  return pool.spec.default === true ? 1 : 2;
}

/** A pool that is for some networks is for pods that are known to be on one of them, and for those that name it. */
function networkUnknown(
  pool: Pool,
  { networks, namespace }: AddressConstraints,
): (() => Refusal) | undefined {
  const names = networks?.names ?? [];
  return isOnNetwork(pool, names) ? undefined : () => otherNetwork(pool, names, namespace);
}

function namedSources(
  view: RecordReader,
  constraints: AddressConstraints,
  names: readonly string[],
): readonly Source[] | Refusal {
  const named: Source[] = [];
  for (const name of names) {
    const source = sourceNamed(view, name);
    if (source === undefined)
      return unknownPool(
        view,
        poolNameIn(name),
        (pool) => ineligibility(view, pool, constraints, false) === undefined,
      );
    if (hasMacsAlone(source.pool)) return givesMacsAlone(source.pool, constraints.namespace);
    // of a pool that is closed it is not said what it has
    const why = ineligibility(view, source.pool, constraints, keepsOf(view, source.pool, constraints));
    if (why !== undefined) return why();
    if (source.part.ranges.length === 0) return noFamilyIn(source);
    named.push(source);
  }
  return named;
}

function noFamilyIn({ pool, part }: Source): Refusal {
  return noFamily([pool], part.families[0] ?? "IPv4");
}

/** The pool, and what of it the name means (`partOf`). */
export function sourceNamed(view: RecordReader, name: string): Source | undefined {
  for (const pool of view.pools()) {
    const part = partOf(pool, name);
    if (part !== undefined) return { pool, part };
  }
  return undefined;
}

/** What of the pool a name, a name with a family behind it (`db/IPv4`) or a CIDR means. */
export function partOf(pool: Pool, name: string): AddressSpace | undefined {
  if (pool.name === name) return pool;
  const family = FAMILIES.find((one) => name === `${pool.name}/${one}`);
  if (family !== undefined) return ofFamily(pool, family);
  const ranges = pool.ranges.filter((range) => range.cidr.text === name);
  const [range] = ranges;
  return range && { ...pool, ranges, families: [range.family] };
}

/** With no ranges, if it has none of the family. */
function ofFamily(pool: Pool, family: Family): AddressSpace {
  const ranges = pool.ranges.filter((range) => range.family === family);
  return { ...pool, ranges, families: [family] };
}

/** The name of the pool without the family that may stand behind it. */
export function poolNameIn(name: string): string {
  const family = FAMILIES.find((one) => name.endsWith(`/${one}`));
  return family === undefined ? name : name.slice(0, -family.length - 1);
}

export function isIn(part: AddressSpace | undefined, address: Address): boolean {
  return part !== undefined && rangeOf(part, address) !== undefined;
}

function keepsOf(view: RecordReader, pool: Pool, { ownAddresses = [] }: AddressConstraints): boolean {
  return ownAddresses.some((address) => view.poolOf(address) === pool);
}

/**
 * Of named pools every family that any of them has; of unnamed ones those of the first that would serve, or of those
 * that the identity has its addresses from: a pool that is new must not take them away.
 */
export function familiesFor(
  view: RecordReader,
  constraints: AddressConstraints,
  sources: readonly Source[],
): readonly Family[] {
  if (constraints.families !== undefined) return [...new Set(constraints.families)];
  const homes = sources.filter(({ pool }) => keepsOf(view, pool, constraints));
  const unnamed = homes.length > 0 ? homes : sources.slice(0, 1);
  const from = constraints.pools === undefined ? unnamed : sources;
  return FAMILIES.filter((family) => from.some(({ part }) => familiesOf(part).includes(family)));
}
