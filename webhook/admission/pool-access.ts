// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { podTemplate } from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { Fields, KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { poolsNamed } from "../../allocator/model/address-request.ts";
import { poolNameIn } from "../../allocator/planning/pool-sources.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { POOLS } from "../../kube/api/resource.ts";
import { toBerthError } from "../../kube/api/status.ts";
import { isAllowed, KnownAccess, reviewAccess } from "./access-reviews.ts";
import type { AdmissionContext, PoolAccess, ServiceAccount } from "./admission-context.ts";

/**
 * The requests, each with the pools that need the verb `use` and for which the account of the pod (or template) has it. Pools
 * that no request can lead to are not asked about. On the embedded stack nobody has the verb.
 */
export async function withUsablePools(
  { access, context }: Pick<AdmissionContext, "access" | "context">,
  namespace: string,
  podSpec: Fields,
  allocations: readonly AllocationRequest[],
): Promise<readonly AllocationRequest[]> {
  if (access === undefined) return allocations;
  const { view } = context;
  const asked = view
    .pools()
    .filter((pool) => pool.authorization === "ServiceAccount")
    .filter((pool) => allocations.some(({ constraints }) => concerns(view, pool, constraints)));
  if (asked.length === 0) return allocations;
  const account = { namespace, name: podSpec.text("serviceAccountName") || "default" };
  const usable = new Set<string>();
  await Promise.all(
    asked.map(async ({ name }) => {
      if (await access.mayUse(account, name)) usable.add(name);
    }),
  );
  return allocations.map((allocation) => ({
    ...allocation,
    constraints: { ...allocation.constraints, usable },
  }));
}

function concerns(view: RecordReader, pool: Pool, constraints: AllocationRequest["constraints"]): boolean {
  const { addresses = [], interfacePools, namespaceLabels } = constraints;
  if (addresses.some((address) => view.poolOf(address) === pool)) return true;
  const isNamed = (name: string) =>
    poolNameIn(name) === pool.name || pool.ranges.some(({ cidr }) => cidr.text === name);
  if (poolsNamed(constraints).some(isNamed)) return true;
  const isAny =
    interfacePools === undefined
      ? constraints.addresses === undefined && constraints.pools === undefined
      : hasAny(constraints);
  if (!isAny) return false;
  const { namespaceSelector } = pool.spec;
  return namespaceSelector === undefined || matches(namespaceSelector, namespaceLabels);
}

/** Whether an interface has neither an address nor a pool. */
function hasAny({ interfaces = {}, interfacePools = {} }: AllocationRequest["constraints"]): boolean {
  return Object.entries(interfacePools).some(
    ([name, pools]) => pools.length === 0 && !Object.hasOwn(interfaces, name),
  );
}

/** Asks the API server by SubjectAccessReview, and remembers the answer for a short time. */
export class SubjectAccessChecker implements PoolAccess {
  readonly #connection: Connection;
  readonly #known: KnownAccess; // by account and pool

  constructor(connection: Connection, clock: Pick<Clock, "monotonic">) {
    this.#connection = connection;
    this.#known = new KnownAccess(clock);
  }

  /** Throws BerthError STORE_UNAVAILABLE or TIMED_OUT when the API server does not say. */
  async mayUse(account: ServiceAccount, pool: string): Promise<boolean> {
    const key = `${account.namespace}/${account.name}/${pool}`;
    const known = this.#known.of(key);
    if (known !== undefined) return known;
    const allowed = await this.#review(account, pool);
    this.#known.remember(key, allowed);
    return allowed;
  }

  async #review({ namespace, name }: ServiceAccount, pool: string): Promise<boolean> {
    const { group, plural } = POOLS;
    const answer = await reviewAccess(this.#connection, {
      user: `system:serviceaccount:${namespace}:${name}`,
      groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
      // with the namespace a RoleBinding there suffices, as it did for PodSecurityPolicies
      resourceAttributes: { verb: "use", group, resource: plural, name: pool, namespace },
    });
    if (answer.status !== 201) throw toBerthError(answer, `ask who may use pool ${pool}`);
    return isAllowed(answer);
  }
}

/** With the pools that the service account of the template may use. */
export async function withPoolsOfTemplate(
  admission: AdmissionContext,
  object: KubeObject,
  allocations: readonly AllocationRequest[],
): Promise<readonly AllocationRequest[]> {
  const podSpec = podTemplate(object).at("spec");
  return await withUsablePools(admission, object.metadata.namespace, podSpec, allocations);
}
