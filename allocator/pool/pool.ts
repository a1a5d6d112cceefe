// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import { parseDuration } from "../base/go-duration.ts";
import { invalidPool, isSubdomain, quote } from "../base/validation.ts";
import { type Address, bitsOf, type Family, fromNumber, parseAddress } from "../ip/address.ts";
import { intersection } from "../ip/ip-range.ts";
import { type AddressSpace, rangeOf, readSpace } from "./address-space.ts";
import { MOST_BLOCK_BITS } from "./blocks.ts";
import { type Bound, boundsOf, mostRetained, type RetainedBound } from "./namespace-bounds.ts";
import { checkNodeCidrs } from "./node-cidrs.ts";
import { type PoolSpec, readPoolSpec, readStoredPoolSpec } from "./pool-spec.ts";
import { checkRoutes } from "./routes.ts";

export {
  capacity,
  classify,
  givenIn,
  intervalsOf,
  rangeOf,
  unavailableByDefault,
} from "./address-space.ts";
export type { PoolSpec, RouteSpec } from "./pool-spec.ts";

/** A pool as it is stored. */
export interface PoolRecord {
  readonly name: string;
  readonly spec: PoolSpec;
  /** It was deleted, and is kept until its addresses are given back. */
  readonly deleting?: boolean;
}

/** A pool that was read and found whole: ranges of addresses, how they are reached, and who may use them. */
export interface Pool extends AddressSpace {
  readonly name: string;
  readonly spec: PoolSpec;
  readonly cooldownMs: number;
  readonly priority: number;
  /** No new reservations: by its spec, or because it is being deleted. */
  readonly disabled: boolean;
  readonly deleting: boolean;
  readonly authorization: "Namespace" | "ServiceAccount";
  /** What one namespace may have of it; none: all. */
  readonly bounds: readonly Bound[];
  /** How many claims of one namespace that nothing needs now may keep addresses of the pool, and for how long. */
  readonly retention: RetainedBound & { readonly ttlMs: number };
}

/** Of pools that say nothing of `cooldown`. */
export const DEFAULT_COOLDOWN_MS = 30_000;
const DEFAULT_RETENTION_TTL = "720h";

type UnreadPool = Omit<PoolRecord, "spec"> & { readonly spec: unknown };

/** Reads a pool that somebody writes; a refusal names the field and says what to write instead. */
export function parsePool(record: UnreadPool): Pool | Refusal {
  const pool = readPool(record, readPoolSpec(record.spec));
  return named(record, isRefusal(pool) ? pool : (largeBlocks(pool.spec) ?? pool));
}

/** A pool that is stored keeps such a size, and has no blocks. */
function largeBlocks({ blockSize = {} }: PoolSpec): Refusal | undefined {
  const sizes = [
    ["IPv4", blockSize.ipv4, "spec.blockSize.ipv4"] as const,
    ["IPv6", blockSize.ipv6, "spec.blockSize.ipv6"] as const,
  ];
  for (const [family, length, field] of sizes) {
    const least = bitsOf(family) - MOST_BLOCK_BITS;
    if (length === undefined || length >= least) continue;
    const most = 2 ** MOST_BLOCK_BITS;
    return invalidPool(field, `${length} makes blocks of more than ${most} addresses; give ${least} or more`);
  }
  return undefined;
}

/** Reads a pool that is stored: what a newer Berth wrote into it is ignored. */
export function parseStoredPool(record: UnreadPool): Pool | Refusal {
  return named(record, readPool(record, readStoredPoolSpec(record.spec)));
}

function named({ name }: UnreadPool, pool: Pool | Refusal): Pool | Refusal {
  return isRefusal(pool) ? { ...pool, details: { ...pool.details, pool: name } } : pool;
}

function readPool({ name, deleting = false }: UnreadPool, spec: PoolSpec | Refusal): Pool | Refusal {
  if (!isSubdomain(name)) {
    return invalidPool(
      "metadata.name",
      `${quote(name)} is not a DNS subdomain: lower-case letters, digits, - and .`,
    );
  }
  if (isRefusal(spec)) return spec;
  const space = readSpace(spec);
  if (isRefusal(space)) return space;
  const refusal =
    checkNodeCidrs(spec, space) ??
    checkRoutes(spec.routes ?? [], space) ??
    checkNameservers(spec) ??
    checkBlocks(spec, space);
  if (refusal !== undefined) return refusal;
  const cooldownMs = parseDuration(spec.cooldown ?? `${DEFAULT_COOLDOWN_MS}ms`);
  if (cooldownMs === undefined) {
    return invalidPool("spec.cooldown", `${quote(spec.cooldown)} is not a duration such as 30s or 5m`);
  }
  const ttlMs = parseDuration(spec.limits?.retention?.ttl ?? DEFAULT_RETENTION_TTL);
  if (ttlMs === undefined) {
    const given = quote(spec.limits?.retention?.ttl);
    return invalidPool("spec.limits.retention.ttl", `${given} is not a duration such as 48h`);
  }
  const { priority = 0 } = spec;
  // what is not known is taken for the stricter one
  const authorization = (spec.authorization ?? "Namespace") === "Namespace" ? "Namespace" : "ServiceAccount";
  const disabled = spec.disabled === true || deleting;
  const retention = { ...mostRetained(space, spec), ttlMs };
  const bounds = boundsOf(space, spec);
  return { ...space, name, spec, cooldownMs, priority, disabled, deleting, authorization, bounds, retention };
}

function checkNameservers(spec: PoolSpec): Refusal | undefined {
  const servers = spec.dns?.nameservers ?? [];
  const bad = servers.findIndex((server) => parseAddress(server) === undefined);
  return bad < 0
    ? undefined
    : invalidPool(`spec.dns.nameservers[${bad}]`, `${quote(servers[bad])} is not an IP address`);
}

/** A block lies inside one network, so that its addresses share prefix length and gateway. */
function checkBlocks(spec: PoolSpec, space: AddressSpace): Refusal | undefined {
  return (
    checkBlock("IPv4", spec.blockSize?.ipv4, space, "spec.blockSize.ipv4") ??
    checkBlock("IPv6", spec.blockSize?.ipv6, space, "spec.blockSize.ipv6")
  );
}

function checkBlock(
  family: Family,
  length: number | undefined,
  space: AddressSpace,
  field: string,
): Refusal | undefined {
  if (length === undefined) return undefined;
  if (!space.families.includes(family))
    return invalidPool(field, `is given and the pool has no ${family} range; drop it`);
  const small = space.ranges.find((range) => range.family === family && range.prefixLength > length);
  if (small === undefined) return undefined;
  return invalidPool(
    field,
    `${length} makes blocks larger than ${small.cidr.text}; give ${small.prefixLength} or more`,
  );
}

export function familiesOf(pool: AddressSpace): readonly Family[] {
  return pool.families;
}

/** The first addresses that two pools would both give; sharing a network is no overlap. */
export function overlap(a: AddressSpace, b: AddressSpace): { first: Address; last: Address } | undefined {
  for (const range of a.ranges) {
    for (const other of b.ranges) {
      const shared = range.family === other.family ? intersection(range, other) : undefined;
      if (shared === undefined) continue;
      return { first: fromNumber(shared.first, range.family), last: fromNumber(shared.last, range.family) };
    }
  }
  return undefined;
}

/** The pool that contains the address; pools that are in force do not overlap. */
export function poolOf<P extends AddressSpace>(pools: Iterable<P>, address: Address): P | undefined {
  for (const pool of pools) {
    if (rangeOf(pool, address) !== undefined) return pool;
  }
  return undefined;
}
