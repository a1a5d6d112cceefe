// SPDX-License-Identifier: Apache-2.0

import { counted } from "../base/counted.ts";
import { type Refusal, refuse } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, familyOf } from "../ip/address.ts";
import { type LabelSelector, matches } from "../pool/label-selector.ts";
import { type Bound, type ByFamily, countedBy, mostWithCooling, type Use } from "../pool/namespace-bounds.ts";
import { forNodes, servesPods } from "../pool/node-cidrs.ts";
import type { Pool } from "../pool/pool.ts";
import { isOnNetwork, namesAttachmentsAlone, otherNetwork } from "../pool/pool-networks.ts";
import { hasMacsAlone } from "../pool/special-addresses.ts";
import type { AddressConstraints } from "./plan.ts";
import { quoted } from "./refusal-messages.ts";

/**
 * Why the pool does not serve the identity, as a way to say it, or undefined when it does. `keeps`: what is asked of
 * the pool is held already, which a disabled pool allows. The words cost a walk over all pools, so they are not made
 * for pools that nobody named.
 */
export function ineligibility(
  view: RecordReader,
  pool: Pool,
  applying: Omit<AddressConstraints, "name">,
  keeps: boolean,
): (() => Refusal) | undefined {
  const details = { pool: pool.name, namespace: applying.namespace };
  if (!servesPods(pool)) return () => forNodes(pool, applying.namespace);
  if (!opensTo(pool.spec.namespaceSelector, applying.namespaceLabels)) {
    return () => refuse("POOL_FORBIDDEN", otherNamespace(view, pool, applying), details);
  }
  if (!opensTo(pool.spec.podSelector, applying.podLabels)) {
    const words = `pool ${quoted(pool.name)} takes only pods with other labels than this one's (its podSelector)`;
    return () => refuse("POOL_FORBIDDEN", words, details);
  }
  const { networks } = applying;
  const isKnown =
    networks?.isAll === true || (networks?.isAttachment === true && namesAttachmentsAlone(pool));
  if (isKnown && !isOnNetwork(pool, networks.names)) {
    return () => otherNetwork(pool, networks.names, applying.namespace);
  }
  if (pool.authorization === "ServiceAccount" && applying.usable?.has(pool.name) !== true) {
    const words = `pool ${quoted(pool.name)} is only for service accounts with the verb "use" on it; ask its administrator for a role`;
    return () => refuse("POOL_FORBIDDEN", words, details);
  }
  return pool.disabled && !keeps ? () => poolDisabled(pool, applying.namespace) : undefined;
}

/** The same of an address that is asked for, which may be all that the request names. */
export function withholdsAddress(
  view: RecordReader,
  pool: Pool,
  applying: AddressConstraints,
  keeps: boolean,
): Refusal | undefined {
  const refusal = ineligibility(view, pool, applying, keeps)?.();
  if (refusal?.code !== "POOL_DISABLED") return refusal;
  const why = pool.deleting ? "is being deleted" : "is disabled (spec.disabled: true)";
  const words = `pool ${quoted(pool.name)} ${why}; ask for an address of another pool`;
  return refuse("POOL_DISABLED", words, refusal.details);
}

/** The words for a pool that only lets addresses be kept. */
export function poolDisabled(pool: Pool, namespace: string): Refusal {
  const why = pool.deleting ? "is being deleted" : "takes no new reservations";
  const words = `pool ${quoted(pool.name)} ${why}; name another pool`;
  return refuse("POOL_DISABLED", words, { pool: pool.name, namespace });
}

function opensTo(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector === undefined || matches(selector, labels);
}

function otherNamespace(
  view: RecordReader,
  pool: Pool,
  { namespace, namespaceLabels }: Omit<AddressConstraints, "name">,
): string {
  const others = view
    .pools()
    .filter(
      (other) =>
        servesPods(other) &&
        !hasMacsAlone(other) &&
        !other.disabled &&
        opensTo(other.spec.namespaceSelector, namespaceLabels),
    )
    .map((other) => quoted(other.name));
  const instead = others.length > 0 ? `; open to it: ${listed(others, 5)}` : "; ask its administrator";
  return `pool ${quoted(pool.name)} is not open to namespace ${namespace}${instead}`;
}

/**
 * Why the identity may not have `wanted` addresses of the pool in all, so far as is known: what was written is counted
 * once more (ADR 0010).
 */
export function quotaExceeded(
  view: RecordReader,
  pool: Pool,
  { namespace, ownAddresses = [], takesAgain = [], drops = [] }: AddressConstraints,
  wanted: ByFamily,
): Refusal | undefined {
  if (pool.bounds.length === 0) return undefined;
  const countIn = (addresses: readonly Address[]) =>
    countFamilies(addresses.filter((address) => view.reservation(address)?.record.pool === pool.name));
  const held = view.held(pool.name, namespace);
  const cooling = without(view.cooling(pool.name, namespace), countIn(takesAgain));
  const more = without(wanted, countIn(ownAddresses));
  return limitReached(pool, namespace, { held, cooling }, { more, drops: countIn(drops) });
}

function without(some: ByFamily, others: ByFamily): ByFamily {
  return { IPv4: (some.IPv4 ?? 0) - (others.IPv4 ?? 0), IPv6: (some.IPv6 ?? 0) - (others.IPv6 ?? 0) };
}

/** Why the namespace, which has so many addresses of the pool, may not have so many more while others that it has go on to cool. */
export function limitReached(
  pool: Pool,
  namespace: string,
  { held, cooling }: Use,
  { more, drops = {} }: { readonly more: ByFamily; readonly drops?: ByFamily },
): Refusal | undefined {
  for (const bound of pool.bounds) {
    const [has, cools, wants] = [countedBy(bound, held), countedBy(bound, cooling), countedBy(bound, more)];
    if (wants > 0 && has + wants > bound.most) return reached(pool, namespace, bound, has);
    const takes = wants + countedBy(bound, drops);
    if (takes > 0 && has + cools + takes > mostWithCooling(bound))
      return stillCooling(pool, namespace, bound, { has, cools });
  }
  return undefined;
}

/** The words for a namespace that is within its limit but for what it has let go of a moment ago. */
function stillCooling(
  { name }: Pool,
  namespace: string,
  bound: Bound,
  { has, cools }: { readonly has: number; readonly cools: number },
): Refusal {
  const which =
    bound.kind === "said"
      ? `which allows one namespace twice its limits.perNamespace, ${mostWithCooling(bound)}, with those that cool`
      : `which leaves ${bound.size - bound.most} of ${bound.size} ${bound.family} addresses to other namespaces`;
  const words = `namespace ${namespace} holds ${counted(has, "address", "addresses")} of pool ${quoted(name)}, ${which}, and ${cools} more cool after their release; try again when they have cooled`;
  return refuse("LIMIT_REACHED", words, { pool: name, namespace });
}

function reached({ name }: Pool, namespace: string, bound: Bound, held: number): Refusal {
  const words =
    bound.kind === "said"
      ? `namespace ${namespace} holds ${held} of the ${counted(bound.most, "address", "addresses")} that pool ${quoted(name)} allows one namespace; release one, or ask for a higher limits.perNamespace`
      : `namespace ${namespace} holds ${held} of the ${bound.size} ${bound.family} addresses of pool ${quoted(name)}, which leaves ${bound.size - bound.most} to other namespaces; release one, or ask for limits.perNamespace in the pool`;
  return refuse("LIMIT_REACHED", words, { pool: name, namespace });
}

export function countFamilies(addresses: Iterable<Address>): ByFamily {
  const counts = { IPv4: 0, IPv6: 0 };
  for (const address of addresses) counts[familyOf(address)]++;
  return counts;
}
