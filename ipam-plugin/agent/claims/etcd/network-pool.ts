// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { isRefusal, type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import { fromNumber, lastOf } from "../../../../allocator/ip/address.ts";
import { formatInterval, intersection } from "../../../../allocator/ip/ip-range.ts";
import { type Pool, type PoolRecord, parsePool } from "../../../../allocator/pool/pool.ts";
import type { RangeSet, Subnet } from "../../../cni/range-set.ts";

/** Why it cannot be told which addresses a network in etcd has: its configuration says none, or says it twice, and one would be dropped. */
export function unclearAddresses(
  network: string,
  { pools, rangeSets }: { readonly pools: readonly string[]; readonly rangeSets: readonly RangeSet[] },
): Refusal | undefined {
  if ((pools.length === 0) !== (rangeSets.length === 0)) return undefined;
  const words =
    pools.length === 0
      ? `network ${network} is kept in etcd and says not which addresses: it needs ipam.subnet, ipam.ranges or ipam.pools`
      : `network ${network} is kept in etcd, and says in two ways which addresses: ipam.pools names ${pools.join(", ")}, and ipam.subnet or ipam.ranges stand beside it; take one out`;
  return refuse("REQUEST_INVALID", words, { field: "ipam" });
}

/** What a namespace may have of a pool at most (pool-spec.ts). */
const MOST = 2_147_483_647n;

/** The pool that the ranges of a network are: named like the network, all of it for its containers, nothing cools. */
export function poolOfNetwork(network: string, sets: readonly RangeSet[]): PoolRecord | Refusal {
  const families = sets.map(([first]) => first.family);
  const twice = families.find((family, i) => families.indexOf(family) !== i);
  if (twice !== undefined) {
    const words = `ipam.ranges of network ${network} has two sets of ${twice}; with etcdConfig an interface has one address of each family, so put both into one set`;
    return refuse("POOL_INVALID", words, { field: "ipam.ranges" });
  }
  const subnets = sets.flat();
  const ranges = subnets.map(rangeOf);
  const sizes = subnets.map(({ bounds: { first, last } }) => last - first + 1n);
  const all = sizes.reduce((sum, size) => sum + size, 0n);
  const perNamespace = Number(all < MOST ? all : MOST);
  const record = { name: poolName(network), spec: { ranges, cooldown: "0s", limits: { perNamespace } } };
  const read = parsePool(record);
  return isRefusal(read) ? { ...read, message: `network ${network}: ${read.message}` } : record;
}

/** Names of networks have upper case and underscores. */
export function poolName(network: string): string {
  if (network.length < 200 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(network)) return network;
  const hash = createHash("sha256").update(network).digest("hex").slice(0, 8);
  const words = network.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `net-${words.slice(0, 60)}-${hash}`.replaceAll(/-+/g, "-");
}

/** host-local lets the bounds be the network and the broadcast address, which go to nobody all the same. */
function rangeOf({ family, cidr, bounds, gateway }: Subnet) {
  const highest = family === "IPv4" ? lastOf(cidr) - 1n : lastOf(cidr);
  const hosts = intersection(bounds, { first: cidr.base + 1n, last: highest }) ?? bounds;
  const [from, to] = [fromNumber(hosts.first, family), fromNumber(hosts.last, family)];
  return { cidr: cidr.text, from, to, gateway };
}

/**
 * Why a host whose configuration has `own` may not give addresses of the pool that is stored: all hosts go by that one, so
 * it must contain what the configuration says. Undefined: it does.
 */
export function differsFrom(stored: Pool, own: PoolRecord): Refusal | undefined {
  const read = parsePool(own);
  if (isRefusal(read)) return read;
  const alien = read.ranges.find(
    (range) =>
      !stored.ranges.some(
        (other) =>
          other.family === range.family &&
          other.cidr.text === range.cidr.text &&
          other.gateway === range.gateway &&
          other.first <= range.first &&
          range.last <= other.last,
      ),
  );
  if (alien === undefined) return undefined;
  const text = formatInterval({ family: alien.family, interval: alien });
  const of = `${text} of ${alien.cidr.text} with gateway ${alien.gateway ?? "none"}`;
  const words = `this host's configuration has ${of}, and pool "${stored.name}" in etcd, which all hosts go by, has not; change the configuration, or the pool with: berthctl --etcd URL apply -f`;
  return refuse("POOL_INVALID", words, { pool: stored.name });
}
