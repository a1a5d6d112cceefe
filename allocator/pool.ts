// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, fromNumber, parseAddress } from "./address.ts";
import { parseDuration } from "./duration.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { type PoolSpace, rangeOf, readSpace } from "./pool-space.ts";
import { type PoolSpec, readPoolSpec } from "./pool-spec.ts";
import { intersection } from "./range.ts";
import { checkRoutes } from "./route.ts";
import { quote, wrong } from "./shape.ts";

export { blocked, capacity, rangeOf, type Standing, spaceOf, standing } from "./pool-space.ts";
export type { DnsSpec, PoolSpec, RouteSpec } from "./pool-spec.ts";

/** A pool as it is stored. */
export interface PoolRecord {
  readonly name: string;
  readonly spec: PoolSpec;
  /** It was deleted, and is kept until its addresses are given back. */
  readonly deleting?: boolean;
}

/** A pool that was read and found whole: ranges of addresses, how they are reached, and who may use them. */
export interface Pool extends PoolSpace {
  readonly name: string;
  readonly spec: PoolSpec;
  readonly cooldownMs: number;
  readonly priority: number;
  /** No new reservations: by its spec, or because it is being deleted. */
  readonly disabled: boolean;
  readonly deleting: boolean;
  readonly authorization: "Namespace" | "ServiceAccount";
}

const DEFAULT_COOLDOWN = "30s";
/** RFC 1123: what Kubernetes asks of the name of a custom resource. */
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

type UnreadPool = Omit<PoolRecord, "spec"> & { readonly spec: unknown };

/** Reads a pool that came from anywhere; a refusal names the field and says what to write instead. */
export function parsePool(record: UnreadPool): Pool | Refusal {
  const pool = readPool(record);
  return isRefusal(pool) ? { ...pool, details: { ...pool.details, pool: record.name } } : pool;
}

function readPool({ name, spec: given, deleting = false }: UnreadPool): Pool | Refusal {
  if (name.length > 253 || !SUBDOMAIN.test(name)) {
    return wrong(
      "metadata.name",
      `${quote(name)} is not a DNS subdomain: lower-case letters, digits, - and .`,
    );
  }
  const spec = readPoolSpec(given);
  if (isRefusal(spec)) return spec;
  const space = readSpace(spec);
  if (isRefusal(space)) return space;
  const refusal = checkRoutes(spec.routes ?? [], space) ?? checkNameservers(spec) ?? checkBlocks(spec, space);
  if (refusal !== undefined) return refusal;
  const cooldownMs = parseDuration(spec.cooldown ?? DEFAULT_COOLDOWN);
  if (cooldownMs === undefined) {
    return wrong("spec.cooldown", `${quote(spec.cooldown)} is not a duration such as 30s or 5m`);
  }
  const { priority = 0, authorization = "Namespace" } = spec;
  const disabled = spec.disabled === true || deleting;
  return { ...space, name, spec, cooldownMs, priority, disabled, deleting, authorization };
}

function checkNameservers(spec: PoolSpec): Refusal | undefined {
  const servers = spec.dns?.nameservers ?? [];
  const bad = servers.findIndex((server) => parseAddress(server) === undefined);
  return bad < 0
    ? undefined
    : wrong(`spec.dns.nameservers[${bad}]`, `${quote(servers[bad])} is not an IP address`);
}

/** A block lies inside one network, so that its addresses share prefix length and gateway. */
function checkBlocks(spec: PoolSpec, space: PoolSpace): Refusal | undefined {
  return (
    checkBlock("IPv4", spec.blockSize?.ipv4, space, "spec.blockSize.ipv4") ??
    checkBlock("IPv6", spec.blockSize?.ipv6, space, "spec.blockSize.ipv6")
  );
}

function checkBlock(
  family: Family,
  length: number | undefined,
  space: PoolSpace,
  field: string,
): Refusal | undefined {
  if (length === undefined) return undefined;
  if (!space.families.includes(family))
    return wrong(field, `is given and the pool has no ${family} range; drop it`);
  const small = space.ranges.find((range) => range.family === family && range.prefixLength > length);
  if (small === undefined) return undefined;
  return wrong(
    field,
    `${length} makes blocks larger than ${small.cidr.text}; give ${small.prefixLength} or more`,
  );
}

export function familiesOf(pool: PoolSpace): readonly Family[] {
  return pool.families;
}

/** The first addresses that two pools would both give; sharing a network is no overlap. */
export function overlap(a: PoolSpace, b: PoolSpace): { first: Address; last: Address } | undefined {
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
export function poolOf<P extends PoolSpace>(pools: Iterable<P>, address: Address): P | undefined {
  for (const pool of pools) {
    if (rangeOf(pool, address) !== undefined) return pool;
  }
  return undefined;
}
