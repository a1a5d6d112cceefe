// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, fromNumber } from "./address.ts";
import { type Applying, beyondLimit, closedTo, disabled } from "./eligibility.ts";
import { isRefusal, type Refusal, refuse } from "./errors.ts";
import { offsetOf, pickFree } from "./pick.ts";
import { familiesOf, type Pool, rangeOf, spaceOf } from "./pool.ts";
import type { PoolSpace } from "./pool-space.ts";
import { exhausted, noFamily, noPool, outside, q, standingRefusal, taken, unknownPool } from "./refusals.ts";
import type { Entry } from "./request.ts";
import type { View } from "./view.ts";

/** What one identity needs, with everything that decides which pools are open to it. */
export interface Ask extends Applying {
  /** Of the claim; seeds the choice, so that an identity tends to the same address. */
  readonly name: string;
  /** Exactly these addresses. */
  readonly entry?: Entry;
  /** Names of pools or CIDRs of their ranges. */
  readonly pools?: readonly string[];
  readonly families?: readonly Family[];
}

export interface Candidate {
  readonly address: Address;
  readonly pool: string;
}

/** One address of one family: the first candidate that can be created is it. */
export interface Lot {
  readonly family: Family;
  /** Asked for by name: there is one candidate, and if it is taken the answer is a refusal. */
  readonly exact: boolean;
  /** Lazy and endless only as far as free addresses go; walk it once. */
  readonly candidates: Iterable<Candidate>;
  /** What to say when no candidate could be created; `besides` of them are for others of the same review. */
  readonly exhausted: (besides?: number) => Refusal;
}

export interface Plan {
  readonly kind: "take";
  /** What the claim holds and keeps. */
  readonly keep: readonly Address[];
  readonly lots: readonly Lot[];
}

/** Decides; touches nothing. Same view in, same plan out. */
export function planAddresses(view: View, ask: Ask): Plan | Refusal {
  return ask.entry === undefined ? planAny(view, ask) : planExact(view, ask, ask.entry);
}

function planExact(view: View, ask: Ask, entry: Entry): Plan | Refusal {
  const unsaid = familiesUnsaid(ask, entry);
  if (unsaid !== undefined) return unsaid;
  const lots: Lot[] = [];
  const keep: Address[] = [];
  const wanted = new Map<Pool, number>(); // pool -> addresses of it, kept ones too
  for (const address of entry) {
    const pool = view.poolOf(address);
    if (pool === undefined) return outside(view, address);
    const held = ask.holds?.includes(address) === true;
    const why =
      notNamed(pool, ask, address) ??
      closedTo(view, pool, ask, held)?.() ??
      standingRefusal(view, pool, address);
    if (why !== undefined) return why;
    count(wanted, pool);
    if (held) keep.push(address);
    else lots.push(exactLot(view, pool, address));
  }
  const beyond = lots.length === 0 ? undefined : beyondLimits(view, ask, wanted);
  return beyond ?? { kind: "take", keep, lots };
}

function beyondLimits(view: View, ask: Ask, wanted: ReadonlyMap<Pool, number>): Refusal | undefined {
  for (const [pool, addresses] of wanted) {
    const beyond = beyondLimit(view, pool, ask, addresses);
    if (beyond !== undefined) return beyond;
  }
  return undefined;
}

/** Addresses and families that contradict each other: to follow one of the two would not be what was asked for. */
function familiesUnsaid({ families }: Ask, entry: Entry): Refusal | undefined {
  const named = new Set(entry.map(familyOf));
  if (families === undefined || (families.length === named.size && families.every((f) => named.has(f)))) {
    return undefined;
  }
  return refuse(
    "REQUEST_INVALID",
    `the request names ${entry.join(" and ")} and asks for ${families.join(" and ")}; name an address of each family, or leave the families out`,
  );
}

function notNamed(pool: Pool, ask: Ask, address: Address): Refusal | undefined {
  if (ask.pools === undefined || ask.pools.some((name) => isIn(partOf(pool, name), address)))
    return undefined;
  return refuse(
    "ADDRESS_OUTSIDE",
    `address ${address} belongs to pool ${q(pool.name)}, and the request names ${ask.pools.map(q).join(", ")}; name one or the other`,
    { address, pool: pool.name },
  );
}

function exactLot(view: View, pool: Pool, address: Address): Lot {
  return {
    family: familyOf(address),
    exact: true,
    candidates: [{ address, pool: pool.name }],
    exhausted: () => taken(view, pool, address, view.reservation(address)?.record),
  };
}

/** A pool, and which of its ranges may serve: all of them, or those of the CIDR that the request names. */
interface Source {
  readonly pool: Pool;
  readonly part: PoolSpace;
}

function planAny(view: View, ask: Ask): Plan | Refusal {
  const sources = sourcesFor(view, ask);
  if (isRefusal(sources)) return sources;
  const families = familiesFor(view, ask, sources);
  const keep = (ask.holds ?? []).filter(
    (address) => families.includes(familyOf(address)) && sources.some(({ part }) => isIn(part, address)),
  );
  const lots: Lot[] = [];
  const spoken = new Map<Pool, number>(); // pool -> addresses of it that are kept or that earlier lots may take
  for (const address of keep) count(spoken, view.poolOf(address));
  for (const family of families) {
    if (keep.some((address) => familyOf(address) === family)) continue;
    const lot = lotOf(view, ask, family, { sources, spoken });
    if (isRefusal(lot)) return lot;
    if (lot !== undefined) lots.push(lot);
  }
  return { kind: "take", keep, lots };
}

/** Undefined: the family is only in pools that let addresses be kept and nothing more, and nobody insists on it. */
function lotOf(
  view: View,
  ask: Ask,
  family: Family,
  from: { sources: readonly Source[]; spoken: Map<Pool, number> },
): Lot | Refusal | undefined {
  const having = from.sources.filter(({ part }) => familiesOf(part).includes(family));
  const pools = having.map(({ pool }) => pool);
  if (having.length === 0)
    return noFamily(
      from.sources.map(({ pool }) => pool),
      family,
    );
  const serving = having.filter(({ pool }) => !pool.disabled);
  const [first] = pools;
  if (serving.length === 0) {
    return ask.families === undefined || first === undefined ? undefined : disabled(first, ask.namespace);
  }
  const limits = serving.map(({ pool }) => beyondLimit(view, pool, ask, (from.spoken.get(pool) ?? 0) + 1));
  const allowed = serving.filter((_, i) => limits[i] === undefined);
  if (allowed.length === 0) return limits[0];
  for (const { pool } of allowed) count(from.spoken, pool);
  return {
    family,
    exact: false,
    candidates: walk(view, allowed, family, `${ask.namespace}/${ask.name}`),
    exhausted: (besides) => exhausted(view, pools, family, besides),
  };
}

function count(counts: Map<Pool, number>, pool: Pool | undefined): void {
  if (pool !== undefined) counts.set(pool, (counts.get(pool) ?? 0) + 1);
}

/** Free addresses of the sources in their order, each from where the identity's hash points. */
function* walk(view: View, sources: readonly Source[], family: Family, seed: string): Generator<Candidate> {
  for (const { pool, part } of sources) {
    const space = spaceOf(part, family);
    for (const n of pickFree(space, view.unpickable(pool, family), offsetOf(seed, space))) {
      yield { address: fromNumber(n, family), pool: pool.name };
    }
  }
}

/** Named pools in the order of their naming, else every open pool by priority. */
function sourcesFor(view: View, ask: Ask): readonly Source[] | Refusal {
  return ask.pools === undefined ? openSources(view, ask) : namedSources(view, ask, ask.pools);
}

function openSources(view: View, ask: Ask): readonly Source[] | Refusal {
  const open: Source[] = [];
  const closed: (() => Refusal)[] = [];
  for (const pool of view.pools()) {
    const why = closedTo(view, pool, ask, keepsOf(view, pool, ask));
    if (why === undefined) open.push({ pool, part: pool });
    else closed.push(why);
  }
  if (open.length > 0) return open;
  const [only] = closed;
  return only !== undefined && closed.length === 1 ? only() : noPool(view, ask.namespace);
}

function namedSources(view: View, ask: Ask, names: readonly string[]): readonly Source[] | Refusal {
  const named: Source[] = [];
  for (const name of names) {
    const source = sourceNamed(view, name);
    if (source === undefined) return unknownPool(view, name);
    const why = closedTo(view, source.pool, ask, keepsOf(view, source.pool, ask));
    if (why !== undefined) return why();
    named.push(source);
  }
  return named;
}

function sourceNamed(view: View, name: string): Source | undefined {
  for (const pool of view.pools()) {
    const part = partOf(pool, name);
    if (part !== undefined) return { pool, part };
  }
  return undefined;
}

/** What of the pool a name or a CIDR means. */
function partOf(pool: Pool, name: string): PoolSpace | undefined {
  if (pool.name === name) return pool;
  const ranges = pool.ranges.filter((range) => range.cidr.text === name);
  const [range] = ranges;
  return range && { ...pool, ranges, families: [range.family] };
}

function isIn(part: PoolSpace | undefined, address: Address): boolean {
  return part !== undefined && rangeOf(part, address) !== undefined;
}

function keepsOf(view: View, pool: Pool, { holds = [] }: Ask): boolean {
  return holds.some((address) => view.poolOf(address) === pool);
}

/**
 * Of named pools every family that any of them has; of unnamed ones those of the first that would serve, or of those
 * that the identity has its addresses from: a pool that is new must not take them away.
 */
function familiesFor(view: View, ask: Ask, sources: readonly Source[]): readonly Family[] {
  if (ask.families !== undefined) return [...new Set(ask.families)];
  const homes = sources.filter(({ pool }) => keepsOf(view, pool, ask));
  const unnamed = homes.length > 0 ? homes : sources.slice(0, 1);
  const from = ask.pools === undefined ? unnamed : sources;
  return (["IPv4", "IPv6"] as const).filter((family) =>
    from.some(({ part }) => familiesOf(part).includes(family)),
  );
}
