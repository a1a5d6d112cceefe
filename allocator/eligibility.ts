// SPDX-License-Identifier: Apache-2.0
import type { Address } from "./address.ts";
import { type Refusal, refuse } from "./errors.ts";
import type { Pool } from "./pool.ts";
import type { Labels } from "./ports.ts";
import { q } from "./refusals.ts";
import { type LabelSelector, matches } from "./selector.ts";
import type { View } from "./view.ts";

/** Everything about an identity and its namespace that decides which pools are open to it. */
export interface Applying {
  readonly namespace: string;
  readonly namespaceLabels: Labels;
  readonly podLabels: Labels;
  /** Pools with `authorization: ServiceAccount` that the pod's service account may use. */
  readonly usable?: ReadonlySet<string>;
  /** What the identity's claim holds already: kept where it still fits, and not counted against limits. */
  readonly holds?: readonly Address[];
}

/**
 * Why the pool does not serve the identity, as a way to say it, or undefined when it does. `keeps`: what is asked of
 * the pool is held already, which a disabled pool allows. The words cost a walk over all pools, so they are not made
 * for pools that nobody named.
 */
export function closedTo(
  view: View,
  pool: Pool,
  applying: Applying,
  keeps: boolean,
): (() => Refusal) | undefined {
  const details = { pool: pool.name, namespace: applying.namespace };
  if (!opensTo(pool.spec.namespaceSelector, applying.namespaceLabels)) {
    return () => refuse("POOL_FORBIDDEN", otherNamespace(view, pool, applying), details);
  }
  if (!opensTo(pool.spec.podSelector, applying.podLabels)) {
    const words = `pool ${q(pool.name)} takes only pods with other labels than this one's (its podSelector)`;
    return () => refuse("POOL_FORBIDDEN", words, details);
  }
  if (pool.authorization === "ServiceAccount" && applying.usable?.has(pool.name) !== true) {
    const words = `pool ${q(pool.name)} is only for service accounts with the verb "use" on it; ask its administrator for a role`;
    return () => refuse("POOL_FORBIDDEN", words, details);
  }
  return pool.disabled && !keeps ? () => disabled(pool, applying.namespace) : undefined;
}

/** The words for a pool that only lets addresses be kept. */
export function disabled(pool: Pool, namespace: string): Refusal {
  const why = pool.deleting ? "is being deleted" : "takes no new reservations";
  const words = `pool ${q(pool.name)} ${why}; name another pool`;
  return refuse("POOL_DISABLED", words, { pool: pool.name, namespace });
}

function opensTo(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector === undefined || matches(selector, labels);
}

function otherNamespace(view: View, pool: Pool, { namespace, namespaceLabels }: Applying): string {
  const others = view
    .pools()
    .filter((other) => !other.disabled && opensTo(other.spec.namespaceSelector, namespaceLabels))
    .map((other) => q(other.name));
  const instead = others.length > 0 ? `; open to it: ${others.slice(0, 5).join(", ")}` : "";
  return `pool ${q(pool.name)} is not open to namespace ${namespace}${instead}`;
}

/**
 * Why the identity may not have `wanted` addresses of the pool in all. Checked against what is known, so that racing
 * requests may go beyond a limit; hard quotas are Kubernetes' own.
 */
export function beyondLimit(
  view: View,
  pool: Pool,
  { namespace, holds = [] }: Applying,
  wanted: number,
): Refusal | undefined {
  const limit = pool.spec.limits?.perNamespace;
  if (limit === undefined) return undefined;
  const held = view.held(pool.name, namespace);
  const own = holds.filter((address) => view.reservation(address)?.record.pool === pool.name).length;
  if (held - own + wanted <= limit) return undefined;
  return refuse(
    "LIMIT_REACHED",
    `namespace ${namespace} holds ${held} addresses of pool ${q(pool.name)}, which allows ${limit}; release one or ask for a higher limit`,
    { pool: pool.name, namespace },
  );
}
