// SPDX-License-Identifier: Apache-2.0
import type { Fields } from "../../allocator/kube-object.ts";
import type { Pool } from "../../allocator/pool.ts";
import type { Clock } from "../../allocator/ports.ts";
import type { Intent } from "../../allocator/reserve.ts";
import { matches } from "../../allocator/selector.ts";
import type { View } from "../../allocator/view.ts";
import type { Connection } from "../../kube/connection.ts";
import { POOLS } from "../../kube/resource.ts";
import { faultOf } from "../../kube/status.ts";
import type { Desk, PoolAccess, ServiceAccount } from "./desk.ts";

/**
 * The intents, with those of the pools that need the verb `use` which the account of the pod (or template) has. Pools
 * that the intents cannot come to are not asked about. On the embedded stack nobody has the verb.
 */
export async function withAccess(
  { access, context }: Pick<Desk, "access" | "context">,
  namespace: string,
  podSpec: Fields,
  intents: readonly Intent[],
): Promise<readonly Intent[]> {
  if (access === undefined) return intents;
  const { view } = context;
  const asked = view
    .pools()
    .filter((pool) => pool.authorization === "ServiceAccount")
    .filter((pool) => intents.some(({ ask }) => concerns(view, pool, ask)));
  if (asked.length === 0) return intents;
  const account = { namespace, name: podSpec.text("serviceAccountName") || "default" };
  const usable = new Set<string>();
  await Promise.all(
    asked.map(async ({ name }) => {
      if (await access.mayUse(account, name)) usable.add(name);
    }),
  );
  return intents.map((intent) => ({ ...intent, ask: { ...intent.ask, usable } }));
}

function concerns(view: View, pool: Pool, { entry, pools, namespaceLabels }: Intent["ask"]): boolean {
  if (entry !== undefined) return entry.some((address) => view.poolOf(address) === pool);
  if (pools !== undefined) {
    return pools.some((name) => name === pool.name || pool.ranges.some(({ cidr }) => cidr.text === name));
  }
  const { namespaceSelector } = pool.spec;
  return namespaceSelector === undefined || matches(namespaceSelector, namespaceLabels);
}

/** A role that was just given is waited for by somebody; one that was taken away may last a little. */
const ALLOWED_MS = 30_000;
const REFUSED_MS = 5_000;
const MOST_KNOWN = 10_000;

const REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/** Asks the API server by SubjectAccessReview, and remembers the answer for a short time. */
export class ReviewedAccess implements PoolAccess {
  readonly #connection: Connection;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #known = new Map<string, { readonly allowed: boolean; readonly until: number }>(); // account and pool -> answer

  constructor(connection: Connection, clock: Pick<Clock, "monotonic">) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Throws BerthError STORE_UNAVAILABLE or TIMED_OUT when the API server does not say. */
  async mayUse(account: ServiceAccount, pool: string): Promise<boolean> {
    const key = `${account.namespace}/${account.name}/${pool}`;
    const known = this.#known.get(key);
    if (known !== undefined && this.#clock.monotonic() < known.until) return known.allowed;
    const allowed = await this.#review(account, pool);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(key, {
      allowed,
      until: this.#clock.monotonic() + (allowed ? ALLOWED_MS : REFUSED_MS),
    });
    return allowed;
  }

  async #review({ namespace, name }: ServiceAccount, pool: string): Promise<boolean> {
    const { group, plural } = POOLS;
    const answer = await this.#connection.call({
      method: "POST",
      path: REVIEWS,
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: {
          user: `system:serviceaccount:${namespace}:${name}`,
          groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
          // with the namespace a RoleBinding there suffices, as it did for PodSecurityPolicies
          resourceAttributes: { verb: "use", group, resource: plural, name: pool, namespace },
        },
      },
    });
    if (answer.status !== 201) throw faultOf(answer, `ask who may use pool ${pool}`);
    return (answer.body as { status?: { allowed?: unknown } }).status?.allowed === true;
  }
}
