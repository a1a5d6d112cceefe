// SPDX-License-Identifier: Apache-2.0

import type { NodeNeed } from "../../../allocator/blocks/block-plan.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { bitsOf, type Family, parseCidr } from "../../../allocator/ip/address.ts";
import { isReturned } from "../../../allocator/model/block.ts";
import { matches } from "../../../allocator/pool/label-selector.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Informers, ObservedNode, ObservedPod } from "../../cluster-state/informers.ts";
import { valuesOf } from "../../cluster-state/live-and-cached.ts";
import type { FreedAddresses } from "./freed-addresses.ts";
import type { PodCounts } from "./pod-counts.ts";
import { waitingFor } from "./pod-interfaces.ts";
import { homesOfWaiting, type WaitingPod, type WaitingPods } from "./waiting-pods.ts";

interface NodeNeedsSource {
  readonly cache: Pick<RecordCache, "pools" | "poolOf" | "blocks" | "claimsOfPod">;
  readonly watches: {
    readonly nodes: Pick<Informers["nodes"], "all" | "get">;
    readonly namespaces: Pick<Informers["namespaces"], "get">;
  };
  readonly counts: Pick<PodCounts, "update" | "groups" | "unaddressed">;
  readonly waiting: WaitingPods;
  readonly freed: Pick<FreedAddresses, "cooling">;
}

/**
 * Addresses of a pool that a node may use beyond what its pods explain, by its agent's word: sandboxes whose pods are gone already, and
 * those that a runtime made without a pod.
 */
const UNEXPLAINED = 16;
/** Pods that are looked at in one go, in some ms: others have their turn between. */
const SLICE = 500;

/** How many addresses of each pool with blocks the nodes' pods need, as of one moment. */
export class NodeNeeds {
  readonly #counts = new Map<string, Map<string, number>>(); // pool/family -> node -> addresses
  readonly #known = new Map<string, Map<string, number>>(); // the same of what pods explain
  readonly #further = new Map<string, Map<string, number>>(); // the same of pods with several interfaces that wait
  readonly #cooling = new Map<string, Map<string, number>>(); // the same of what pods have had a moment ago
  readonly #nodes: readonly ObservedNode[];
  readonly #byName: ReadonlyMap<string, ObservedNode>;

  constructor(nodes: Iterable<ObservedNode>) {
    this.#nodes = [...nodes].filter(({ fenced }) => !fenced).sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#byName = new Map(this.#nodes.map((node) => [node.name, node]));
  }

  /** The nodes that may have blocks of the pool. */
  needs(pool: Pool, family: Family): readonly NodeNeed[] {
    const key = `${pool.name}/${family}`;
    const [counts, known, cooling] = [this.#counts, this.#known, this.#cooling].map((all) => all.get(key));
    return this.#nodes
      .filter(({ labels }) => matches(pool.spec.nodeSelector, labels))
      .map(({ name, uid }) => ({
        ...{ node: name, nodeUID: uid, pods: counts?.get(name) ?? 0, knownPods: known?.get(name) ?? 0 },
        ...{ cooling: cooling?.get(name) ?? 0 },
      }));
  }

  /** Whether the pool's nodeSelector has the node; undefined: there is no such node, or it counts as fenced. */
  selects(pool: Pool, node: string): boolean | undefined {
    const found = this.#byName.get(node);
    return found && matches(pool.spec.nodeSelector, found.labels);
  }

  count(pool: string, family: Family, node: string, pods = 1): void {
    for (const counts of [this.#of(this.#counts, pool, family), this.#of(this.#known, pool, family)])
      counts.set(node, (counts.get(node) ?? 0) + pods);
  }

  /** A pod may have an address there at each interface, of which its status shows the first alone. */
  countFurther(pool: string, family: Family, node: string): void {
    this.count(pool, family, node);
    const further = this.#of(this.#further, pool, family);
    further.set(node, (further.get(node) ?? 0) + 1);
  }

  /** An address of the node's blocks cools there. */
  countCooling(pool: string, family: Family, node: string): void {
    const counts = this.#of(this.#cooling, pool, family);
    counts.set(node, (counts.get(node) ?? 0) + 1);
  }

  /** So many are used, by pods of which some are not counted. */
  atLeast(pool: string, family: Family, node: string, used: number): void {
    const counts = this.#of(this.#counts, pool, family);
    const further = this.#of(this.#further, pool, family).get(node) ?? 0;
    counts.set(node, Math.max(counts.get(node) ?? 0, used + further));
  }

  #of(all: Map<string, Map<string, number>>, pool: string, family: Family): Map<string, number> {
    const key = `${pool}/${family}`;
    const counts = all.get(key) ?? new Map<string, number>();
    all.set(key, counts);
    return counts;
  }
}

/**
 * Counts demand twice, and the larger counts: pods by the addresses that they have, and before they have any by the choice that
 * the agent makes too; and what agents said is used, which knows of networks that name pools, as far as the node has pods for it.
 */
export async function countNodeNeeds(source: NodeNeedsSource, rest: () => Promise<void>): Promise<NodeNeeds> {
  const demand = new NodeNeeds(valuesOf(source.watches.nodes.all()));
  const pools = source.cache.pools().filter(({ spec }) => spec.blockSize !== undefined);
  if (pools.length === 0) return demand;
  const { waiting, servedElsewhere, interfaces, networks } = await countPods(source, demand, rest);
  const used = [...usedByNode(source)];
  const given = new Set(used.flatMap(([[pool], count]) => (count > 0 ? [pool] : [])));
  for (const [n, [observed, pod]] of waiting.entries()) {
    if (n % SLICE === SLICE - 1) await rest();
    const wait = source.waiting.see(observed, servedElsewhere.has(observed.node));
    const known = { ...pod, input: { networks: [...networks], ...pod.input } };
    for (const { pool, family, isFurther } of homesOfWaiting(pools, known, wait, ({ name }) =>
      given.has(name),
    ))
      demand[isFurther ? "countFurther" : "count"](pool, family, observed.node);
  }
  source.waiting.end();
  for (const [pool, family, node] of source.freed.cooling()) demand.countCooling(pool, family, node);
  for (const [[pool, family, node], count] of used) {
    // else whoever has an agent's token says of each block that it is full, and gets the next ones, until there is none
    demand.atLeast(pool, family, node, Math.min(count, (interfaces.get(node) ?? 0) + UNEXPLAINED));
  }
  return demand;
}

interface PodCount {
  /** They need an address, and have none. */
  readonly waiting: readonly (readonly [ObservedPod, WaitingPod])[];
  /** Nodes with pods that have addresses of no pool. */
  readonly servedElsewhere: ReadonlySet<string>;
  /** Node -> of all its pods. */
  readonly interfaces: ReadonlyMap<string, number>;
  /** Those that pods' first interfaces are attached to, by the pools that these have addresses of. */
  readonly networks: ReadonlySet<string>;
}

/** Counts those that have addresses; others are for whoever knows of all. */
async function countPods(
  source: NodeNeedsSource,
  demand: NodeNeeds,
  rest: () => Promise<void>,
): Promise<PodCount> {
  const servedElsewhere = new Set<string>();
  const interfaces = new Map<string, number>();
  const serving = new Set<string>();
  await source.counts.update(rest);
  for (const { node, pods, homes, ...group } of source.counts.groups()) {
    interfaces.set(node, (interfaces.get(node) ?? 0) + pods * group.interfaces);
    if (homes?.length === 0) servedElsewhere.add(node);
    for (const [pool, family] of homes ?? []) {
      demand.count(pool, family, node, pods);
      serving.add(pool);
    }
  }
  const waiting: (readonly [ObservedPod, WaitingPod])[] = [];
  let n = 0;
  for (const pod of [...source.counts.unaddressed()]) {
    if (++n % SLICE === 0) await rest();
    const waits = waitingFor(source, pod);
    if (waits !== undefined) waiting.push([pod, waits]);
  }
  const pools = source.cache.pools().filter(({ name }) => serving.has(name));
  const networks = new Set(pools.flatMap(({ spec }) => spec.networks ?? []));
  return { waiting, servedElsewhere, interfaces, networks };
}

function usedByNode({
  cache,
}: NodeNeedsSource): Iterable<readonly [readonly [string, Family, string], number]> {
  const sums = new Map<string, readonly [readonly [string, Family, string], number]>(); // pool/family/node -> used
  for (const { record } of cache.blocks()) {
    const cidr = parseCidr(record.cidr);
    if (cidr === undefined || record.releasedAt !== undefined || isReturned(record)) continue;
    const { family } = cidr;
    // an agent says what it likes: no more can be used than the block has
    const most = 2 ** (bitsOf(family) - cidr.prefixLength);
    const used = Math.min(record.status?.used ?? 0, most);
    const key = `${record.pool}/${family}/${record.node}`;
    const before = sums.get(key)?.[1] ?? 0;
    sums.set(key, [[record.pool, family, record.node], before + used]);
  }
  return sums.values();
}
