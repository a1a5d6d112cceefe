// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import { cooldownOf } from "../cache/cooldown.ts";
import { holderOf, type RecordReader } from "../cache/reader.ts";
import { type Address, type Family, familyOf, fromNumber, toNumber } from "../ip/address.ts";
import { freeNeighbours } from "../ip/free-address.ts";
import { refuseAddress } from "../ip/mac.ts";
import { writtenAddress } from "../ip/written-address.ts";
import type { Block } from "../model/block.ts";
import type { Claim } from "../model/claim.ts";
import { type ClaimPlace, describeHolder } from "../model/container-claim.ts";
import { isOfPool } from "../model/occupant.ts";
import { isBackedByClaim, type Reservation } from "../model/reservation.ts";
import { servesPods } from "../pool/node-cidrs.ts";
import { classify, intervalsOf, type Pool } from "../pool/pool.ts";
import { hasMacsAlone } from "../pool/special-addresses.ts";
import { inBlockWords } from "./block-words.ts";
import { isOrAre, shareOfBlocks } from "./blocks-in-pool.ts";
import { freedBy } from "./freed-by.ts";

const DAY_MS = 86_400_000;
/** So many free addresses are named in place of one that is not to be had. */
const NEARBY = 3;
/** How far they are looked for among those that a pool keeps for requests by name. */
const FAR = 256n;

export function entryRefusal(view: RecordReader, pool: Pool, address: Address): Refusal | undefined {
  const kind = classify(pool, address);
  if (kind === "open" || kind === "reserved") return undefined;
  return neverGiven(view, pool, address, kind === "gateway" ? "is the gateway of" : "is excluded from");
}

/** The words for an address that the pool gives to nobody. */
export function neverGiven(view: RecordReader, pool: Pool, address: Address, why: string): Refusal {
  return refuseAddress(
    "ADDRESS_EXCLUDED",
    `address ${address} ${why} pool ${quoted(pool.name)}${alternatives(view, pool, address)}`,
    {
      address,
      pool: pool.name,
    },
  );
}

/** The words for an address that somebody else holds; `found` is what the store answered, if it did. */
export function addressTaken(
  view: RecordReader,
  pool: Pool,
  address: Address,
  found: Reservation | undefined,
): Refusal {
  const details = { address, pool: pool.name };
  if (found === undefined) {
    return refuseAddress(
      "ADDRESS_TAKEN",
      `address ${address} in pool ${quoted(pool.name)} is taken${alternatives(view, pool, address)}`,
      details,
    );
  }
  const { key, claim } = holderOf(view, found);
  const near = alternatives(view, pool, address);
  const { how, next } = heldAs(found, { claim, key, cooldownMs: cooldownOf(view, found), place: view });
  return refuseAddress(
    "ADDRESS_TAKEN",
    `address ${address} in pool ${quoted(pool.name)} ${how}${near}; or ${next}`,
    {
      ...details,
      holder: key,
    },
  );
}

/** The words for an address that a node has for pods which need no fixed one; `found` may be the block around its own. */
export function addressInBlock(view: RecordReader, pool: Pool, address: Address, found: Block): Refusal {
  const known = view.blockOwning?.(address);
  const block = known?.within === found.cidr ? known : found;
  const { how, next } = inBlockWords(block, address);
  const near = alternatives(view, pool, address);
  const words = `address ${address} in pool ${quoted(pool.name)} ${how}${near}`;
  return refuseAddress("ADDRESS_TAKEN", `${words}; or ${next}`, {
    address,
    pool: pool.name,
    node: block.node,
  });
}

/** How it is held, and what to do about it. */
function heldAs(
  found: Reservation,
  {
    claim,
    key,
    cooldownMs,
    place,
  }: {
    readonly claim: Claim | undefined;
    readonly key: string;
    readonly cooldownMs: number;
    readonly place: ClaimPlace;
  },
): { how: string; next: string } {
  const whose = claim === undefined ? key : `${key} (${describeHolder(claim, place)})`;
  if (found.releasedAt !== undefined) {
    const next = `this one after ${timeOf(found.releasedAt + cooldownMs, cooldownMs)}`;
    return { how: `was given back by ${key} and is cooling down`, next };
  }
  if (isBeside(claim, found)) return { how: besideWords(whose), next: "try again later" };
  return { how: `is held by ${whose}`, next: freedBy(claim, key, place) };
}

/** The first whole second from then on; with its date where it may be on another day. */
function timeOf(ms: number, waitMs: number): string {
  const text = new Date(Math.ceil(ms / 1000) * 1000).toISOString();
  return waitMs < DAY_MS ? `${text.slice(11, 19)} UTC` : `${text.slice(0, 19)}Z`;
}

/** The claim does not have it: it is kept for the next pod of the claim, until that is seen or does not come (ADR 0007). */
export function isBeside(claim: Claim | undefined, reservation: Reservation): boolean {
  return claim !== undefined && reservation.releasedAt === undefined && !isBackedByClaim(claim, reservation);
}

/** To release the claim would free what it has, and not this one. */
function besideWords(whose: string): string {
  return `is kept beside claim ${whose} for a pod that was admitted, and is free again within 120 s if that does not come`;
}

/** The words for who may not know whose it is; `pool` is known where the address stands in one. */
export function addressElsewhere(view: RecordReader, pool: Pool | undefined, address: Address): Refusal {
  return withoutNames(view, { pool, address, why: "is held in another namespace" });
}

/** The words for who may not know which node has it. */
export function addressOfNodes(view: RecordReader, pool: Pool | undefined, address: Address): Refusal {
  return withoutNames(view, { pool, address, why: "is for pods that need no fixed address" });
}

export function withoutNames(
  view: RecordReader,
  {
    pool,
    address,
    why,
  }: { readonly pool: Pool | undefined; readonly address: Address; readonly why: string },
): Refusal {
  const where = pool === undefined ? "" : ` in pool ${quoted(pool.name)}`;
  const near = pool === undefined ? "" : alternatives(view, pool, address);
  const words = `address ${address}${where} ${why}${near}${near === "" ? "; " : "; or "}ask whoever runs the network`;
  return refuseAddress(
    "ADDRESS_TAKEN",
    words,
    pool === undefined ? { address } : { address, pool: pool.name },
  );
}

/** What to ask for in its place; where there is nothing, that the pool is full and what helps. */
export function alternatives(view: RecordReader, pool: Pool, address: Address): string {
  const family = familyOf(address);
  const asked = toNumber(address);
  const open = freeNeighbours(intervalsOf(pool, family), view.unpickable(pool, family), asked, NEARBY);
  // whoever names an address of these may have another one of them, which nobody gets who names none
  const reserved = classify(pool, address) === "reserved" ? freeReserved(view, pool, address) : [];
  const near = [...reserved, ...open].slice(0, NEARBY);
  return near.length === 0
    ? "; no other is free in the pool: add a range"
    : `; free nearby: ${near.map((n) => fromNumber(n, family)).join(", ")}`;
}

/** Free addresses around this one that the pool keeps for requests by name, the nearest first. */
function freeReserved(view: RecordReader, pool: Pool, address: Address): bigint[] {
  const family = familyOf(address);
  const asked = toNumber(address);
  const spans = intervalsOf(pool, family);
  const isFree = (n: bigint) => {
    if (!spans.some(({ first, last }) => first <= n && n <= last)) return false;
    const candidate = fromNumber(n, family);
    if (classify(pool, candidate) !== "reserved" || view.reservation(candidate) !== undefined) return false;
    if (view.occupant?.(candidate) !== undefined) return false;
    return view.blockOwning?.(candidate) === undefined;
  };
  const found: bigint[] = [];
  for (let away = 1n; away <= FAR && found.length < NEARBY; away++) {
    found.push(...[asked - away, asked + away].filter(isFree));
  }
  return found.slice(0, NEARBY);
}

/** Names the pools that may serve whoever asks, if any of them may. */
export function unknownPool(
  view: { pools(): readonly Pool[] },
  name: string,
  isOpen: (pool: Pool) => boolean = () => true,
): Refusal {
  const all = view.pools().filter((pool) => servesPods(pool) && !hasMacsAlone(pool));
  const open = all.filter(isOpen);
  const names = (open.length > 0 ? open : all).map((pool) => quoted(pool.name));
  const have =
    names.length === 0
      ? "there are no pools yet, create an IPPool first"
      : `name one of ${listed(names, 10)}`;
  const written = writtenAddress(name);
  const isNoName = written?.asIps !== undefined;
  const meant = isNoName ? `, which is ${written.is} and no name (addresses are for berth.dev/ips)` : "";
  return refuseAddress("POOL_UNKNOWN", `there is no pool ${quoted(name)}${meant}; ${have}`, { pool: name });
}

/** The words for a pool of MAC addresses that is to give an address. */
export function givesMacsAlone({ name }: Pool, namespace: string): Refusal {
  const words = `pool ${quoted(name)} has MAC addresses alone, which a pod names (berth.dev/mac); name a pool of addresses`;
  return refuse("POOL_FORBIDDEN", words, { pool: name, namespace });
}

export function noPool(view: RecordReader, namespace: string): Refusal {
  if (view.pools().length === 0) return unknownAny();
  return refuseAddress(
    "POOL_FORBIDDEN",
    `no pool is open to this pod in namespace ${namespace}; name one with berth.dev/pools or ask for a pool that selects the namespace`,
    { namespace },
  );
}

function unknownAny(): Refusal {
  return refuseAddress("POOL_UNKNOWN", "there are no pools yet; create an IPPool first");
}

export function noFamily(pools: readonly Pool[], family: Family): Refusal {
  const names = pools.map((pool) => pool.name);
  return refuseAddress(
    "FAMILY_UNAVAILABLE",
    `no ${family} range in pool ${names.map(quoted).join(", ")}; ask for another family or add a pool that has it`,
    { pool: names.join(","), family },
  );
}

/** `skipped`: addresses that others of the same review would get. */
export function poolExhausted(
  view: RecordReader,
  pools: readonly Pool[],
  family: Family,
  skipped = 0,
): Refusal {
  const names = pools.map((pool) => pool.name);
  const held = [...new Set(names)].reduce((sum, name) => sum + view.taken(name)[family], 0);
  const blocks = shareOfBlocks(view, pools, family);
  const outside = occupiedIn(view, pools, family);
  const used = outside === 0 ? "" : `, ${outside} ${isOrAre(outside)} in use by what is not Berth's`;
  const others = skipped === 0 ? "" : `, and the pods before this one get ${skipped}`;
  return refuseAddress(
    "POOL_EXHAUSTED",
    `no free ${family} address in pool ${names.map(quoted).join(", ")}: ${held} ${isOrAre(held)} held or cooling${blocks.how}${used}${others}; ${blocks.next}add a range, or release claims that are not needed`,
    { pool: names.join(","), family },
  );
}

/** Addresses of the pools that others have, and not from Berth. */
function occupiedIn(view: RecordReader, pools: readonly Pool[], family: Family): number {
  let count = 0;
  for (const [address, occupant] of view.occupants?.() ?? []) {
    const home = familyOf(address) === family ? view.poolOf(address) : undefined;
    if (home !== undefined && pools.includes(home) && isOfPool(occupant, home)) {
      if (classify(home, address) === "open" && view.reservation(address) === undefined) count++;
    }
  }
  return count;
}

/** A name in a message. */
export function quoted(name: string): string {
  return JSON.stringify(name);
}
