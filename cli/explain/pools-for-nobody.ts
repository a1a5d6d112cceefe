// SPDX-License-Identifier: Apache-2.0
// Pools that keep claims from addresses that they have: no node is of them, or they are closed to their namespaces. A pool that
// nobody has anything of may wait for nodes or namespaces that come later, and is not told of.

import { counted } from "../../allocator/base/counted.ts";
import { listed } from "../../allocator/base/listed.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { type Finding, pending } from "../../allocator/gc/finding.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { withoutNodeNow } from "../../allocator/planning/node-fit.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { nodesNow } from "./nodes-now.ts";

interface Records {
  readonly pools: readonly Pool[];
  readonly claims: readonly Stored<"claim">[];
  readonly reservations: readonly Stored<"reservation">[];
}

/** Of those that take new reservations, the ones that claims have addresses of. */
interface PoolInUse {
  readonly pool: Pool;
  /** claim key -> its holder */
  readonly holders: ReadonlyMap<string, Holder>;
}

interface Holder {
  readonly namespace: string;
  /** Its pod is there, or may come at any time. */
  readonly hasPod: boolean;
}

interface Found {
  readonly findings: readonly Finding[];
  /** This user may not list nodes or namespaces that would have to be looked at. */
  readonly isPart: boolean;
}

const NAMED = 3;

/** Labels of pods, and rights of service accounts, are not looked at. */
export async function poolsForNobody(
  records: Records,
  backend: Pick<Backend, "place" | "world">,
): Promise<Found> {
  const used = inUse(records);
  const withoutNode = await nodeless(used, backend);
  const closed = await closedOf(used, backend);
  return {
    findings: [...(withoutNode ?? []), ...(closed ?? [])],
    isPart: withoutNode === undefined || closed === undefined,
  };
}

function inUse({ pools, claims, reservations }: Records): readonly PoolInUse[] {
  const selecting = pools.filter(
    ({ disabled, spec }) => !disabled && (spec.nodeSelector ?? spec.namespaceSelector) !== undefined,
  );
  if (selecting.length === 0) return [];
  const withPod = new Set(claims.flatMap(({ key, record }) => (hasPod(record) ? [key] : [])));
  const holders = new Map(selecting.map(({ name }) => [name, new Map<string, Holder>()]));
  for (const { record } of reservations) {
    if (record.releasedAt !== undefined) continue;
    const key = claimKey(record.claim);
    holders.get(record.pool)?.set(key, { namespace: record.claim.namespace, hasPod: withPod.has(key) });
  }
  return selecting.flatMap((pool) => {
    const some = holders.get(pool.name) ?? new Map<string, Holder>();
    return some.size === 0 ? [] : [{ pool, holders: some }];
  });
}

/** One that is retained, or that a person made, is kept without a pod, and nodes may be gone meanwhile. */
function hasPod({ retained, handMade, binding }: Claim): boolean {
  return retained === undefined && (handMade !== true || binding !== undefined);
}

/** On hosts without Kubernetes there are no Nodes to select. Undefined: this user may not list them. */
async function nodeless(
  used: readonly PoolInUse[],
  backend: Pick<Backend, "place" | "world">,
): Promise<readonly Finding[] | undefined> {
  const selecting = used.filter(
    ({ pool, holders }) => pool.spec.nodeSelector !== undefined && holders.values().some((one) => one.hasPod),
  );
  if (selecting.length === 0 || backend.place !== "cluster") return [];
  const nodes = await nodesNow(backend);
  if (nodes === undefined) return undefined;
  return selecting.flatMap(({ pool }) => {
    const then = "a pod with an address of it stays Pending until one has";
    const words = withoutNodeNow({ known: () => nodes }, [pool], then);
    return words === undefined ? [] : [pending("no-node", pool.name, words)];
  });
}

/** Undefined: this user may not read namespaces. */
async function closedOf(
  used: readonly PoolInUse[],
  { place, world }: Pick<Backend, "place" | "world">,
): Promise<readonly Finding[] | undefined> {
  const selecting = used.filter(({ pool }) => pool.spec.namespaceSelector !== undefined);
  if (selecting.length === 0) return [];
  return await ifAllowed(async () => {
    const all = place === "cluster" ? await namespacesIn(world) : undefined;
    const labels = async (name: string) =>
      all === undefined ? (await namespaceOf(world, name)).labels : all.get(name);
    const findings: Finding[] = [];
    for (const one of selecting) {
      const some = await shutOut(one, labels);
      if (some.length > 0) findings.push(closedTo(one.pool, some));
    }
    return findings;
  });
}

async function namespacesIn(world: Backend["world"]): Promise<ReadonlyMap<string, Labels>> {
  const namespaces = new Map<string, Labels>(); // name -> labels
  for await (const { metadata } of world.each("Namespace")) namespaces.set(metadata.name, metadata.labels);
  return namespaces;
}

/** Claims with addresses of the pool in namespaces that it is not open to; those of a namespace that is gone go by themselves. */
async function shutOut(
  { pool: { spec }, holders }: PoolInUse,
  labelsOf: (namespace: string) => Promise<Labels | undefined>,
): Promise<readonly string[]> {
  const closed: string[] = [];
  for (const [namespace, claims] of Map.groupBy(holders, ([, one]) => one.namespace)) {
    const labels = await labelsOf(namespace);
    if (labels !== undefined && !matches(spec.namespaceSelector, labels))
      closed.push(...claims.map(([key]) => key));
  }
  return closed.toSorted();
}

function closedTo({ name }: Pool, claims: readonly string[]): Finding {
  const many = counted(claims.length, "claim that has", "claims that have");
  const words = `pool ${name} is not open to the namespaces of ${many} addresses of it (${listed(claims, NAMED)}): each is kept while its pod runs, and the next pod of it is refused; release them, or open the pool to them (spec.namespaceSelector)`;
  return pending("closed", name, words);
}
