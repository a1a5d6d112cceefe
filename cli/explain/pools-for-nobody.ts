// SPDX-License-Identifier: Apache-2.0
// Pools that no node is of, and pools that are closed to who would have their addresses.

import { counted } from "../../allocator/base/counted.ts";
import { listed } from "../../allocator/base/listed.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { type Finding, pending } from "../../allocator/gc/finding.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { withoutNodeNow } from "../../allocator/planning/node-fit.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import { servesPods } from "../../allocator/pool/node-cidrs.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { nodesNow } from "./nodes-now.ts";

interface Records {
  readonly pools: readonly Pool[];
  readonly reservations: readonly Stored<"reservation">[];
}

interface Found {
  readonly findings: readonly Finding[];
  /** This user may not list nodes or namespaces that would have to be looked at. */
  readonly isPart: boolean;
}

const NAMED = 3;

/** Of pools that take new reservations. Labels of pods, and rights of service accounts, are not looked at. */
export async function poolsForNobody(
  { pools, reservations }: Records,
  backend: Pick<Backend, "place" | "world">,
): Promise<Found> {
  const open = pools.filter(({ disabled }) => !disabled);
  const withoutNode = await nodeless(open, backend);
  const closed = await closedOf({ pools: open, reservations }, backend);
  return {
    findings: [...(withoutNode ?? []), ...(closed ?? [])],
    isPart: withoutNode === undefined || closed === undefined,
  };
}

/** On hosts without Kubernetes there are no Nodes to select. Undefined: this user may not list them. */
async function nodeless(
  pools: readonly Pool[],
  backend: Pick<Backend, "place" | "world">,
): Promise<readonly Finding[] | undefined> {
  const selecting = pools.filter(({ spec }) => spec.nodeSelector !== undefined);
  if (selecting.length === 0 || backend.place !== "cluster") return [];
  const nodes = await nodesNow(backend);
  if (nodes === undefined) return undefined;
  return selecting.flatMap((pool) => {
    const then = servesPods(pool)
      ? "a pod with an address of it stays Pending until one has"
      : "no node gets a CIDR of it until one has";
    const words = withoutNodeNow({ known: () => nodes }, [pool], then);
    return words === undefined ? [] : [pending("no-node", pool.name, words)];
  });
}

/** Undefined: this user may not read namespaces. */
async function closedOf(
  { pools, reservations }: Records,
  { place, world }: Pick<Backend, "place" | "world">,
): Promise<readonly Finding[] | undefined> {
  const selecting = pools.filter((pool) => pool.spec.namespaceSelector !== undefined && servesPods(pool));
  if (selecting.length === 0) return [];
  return await ifAllowed(async () => {
    const all = place === "cluster" ? await namespacesIn(world) : undefined;
    const labels = async (name: string) =>
      all === undefined ? (await namespaceOf(world, name)).labels : all.get(name);
    const findings: Finding[] = [];
    for (const pool of selecting) {
      const some = await shutOut(pool, reservations, labels);
      if (some.length > 0) findings.push(closedTo(pool, some));
      else if (all?.values().every((one) => !matches(pool.spec.namespaceSelector, one)) === true)
        findings.push(pending("closed", pool.name, openToNone(pool)));
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
  { name, spec }: Pool,
  reservations: Records["reservations"],
  labelsOf: (namespace: string) => Promise<Labels | undefined>,
): Promise<readonly string[]> {
  const keys = new Map<string, string>(); // claim -> its namespace
  for (const { record } of reservations)
    if (record.pool === name && record.releasedAt === undefined)
      keys.set(claimKey(record.claim), record.claim.namespace);
  const closed: string[] = [];
  for (const [namespace, claims] of Map.groupBy(keys, ([, one]) => one)) {
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

function openToNone({ name }: Pool): string {
  return `pool ${name} is open to no namespace: none has the labels of its spec.namespaceSelector, so that no pod gets an address of it`;
}
