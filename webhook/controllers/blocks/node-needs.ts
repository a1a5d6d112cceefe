// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../../allocator/base/errors.ts";
import type { NodeNeed } from "../../../allocator/blocks/block-plan.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { bitsOf, type Family, familyOf, parseCidr } from "../../../allocator/ip/address.ts";
import { ASSIGNED_CLAIM, EXEMPT_NAMESPACE, readRequest } from "../../../allocator/manifest/annotations.ts";
import { requestsAddress } from "../../../allocator/model/address-request.ts";
import { isReturned } from "../../../allocator/model/block.ts";
import { readTold } from "../../../allocator/model/interfaces.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import { matches } from "../../../allocator/pool/label-selector.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { type ChoiceInput, choosePools } from "../../../allocator/pool/pool-choice.ts";
import type { Informers, ObservedNode, ObservedPod } from "../../cluster-state/informers.ts";

export interface NodeNeedsSource {
  readonly mirror: Pick<RecordCache, "pools" | "poolOf" | "blocks" | "claimsOfPod">;
  readonly watches: {
    readonly pods: Pick<Informers["pods"], "all">;
    readonly nodes: Pick<Informers["nodes"], "all" | "get">;
    readonly namespaces: Pick<Informers["namespaces"], "get">;
  };
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
  readonly #nodes: readonly ObservedNode[];

  constructor(nodes: Iterable<ObservedNode>) {
    this.#nodes = [...nodes].filter(({ fenced }) => !fenced).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The nodes that may have blocks of the pool. */
  needs(pool: Pool, family: Family): readonly NodeNeed[] {
    const counts = this.#counts.get(`${pool.name}/${family}`);
    return this.#nodes
      .filter(({ labels }) => matches(pool.spec.nodeSelector, labels))
      .map(({ name, uid }) => ({ node: name, nodeUID: uid, pods: counts?.get(name) ?? 0 }));
  }

  count(pool: string, family: Family, node: string): void {
    const counts = this.#of(pool, family);
    counts.set(node, (counts.get(node) ?? 0) + 1);
  }

  atLeast(pool: string, family: Family, node: string, addresses: number): void {
    const counts = this.#of(pool, family);
    counts.set(node, Math.max(counts.get(node) ?? 0, addresses));
  }

  #of(pool: string, family: Family): Map<string, number> {
    const key = `${pool}/${family}`;
    const counts = this.#counts.get(key) ?? new Map<string, number>();
    this.#counts.set(key, counts);
    return counts;
  }
}

/**
 * Counts demand twice, and the larger counts: pods by the addresses that they have, and before they have any by the choice that
 * the agent makes too; and what agents said is used, which knows of networks that name pools, and of pods that a label selects, as far
 * as the node has pods for it.
 */
export async function countNodeNeeds(source: NodeNeedsSource, rest: () => Promise<void>): Promise<NodeNeeds> {
  const { pods, nodes } = source.watches;
  const demand = new NodeNeeds(valuesOf(nodes.all()));
  const pools = source.mirror.pools().filter(({ spec }) => spec.blockSize !== undefined);
  const interfaces = new Map<string, number>(); // node -> of all its pods
  let n = 0;
  for (const pod of [...valuesOf(pods.all())]) {
    if (++n % SLICE === 0) await rest();
    if (pools.length === 0) continue;
    const before = interfaces.get(pod.node) ?? 0;
    interfaces.set(pod.node, before + interfacesOf(pod));
    if (!needsAddress(pod)) continue;
    for (const [pool, family] of homesOf(source, pools, pod)) demand.count(pool.name, family, pod.node);
  }
  for (const [key, used] of usedByNode(source)) {
    const [pool = "", family, node = ""] = key;
    // else whoever has an agent's token says of each block that it is full, and gets the next ones, until there is none
    demand.atLeast(pool, family, node, Math.min(used, (interfaces.get(node) ?? 0) + UNEXPLAINED));
  }
  return demand;
}

/** Which may have an address each. Those of an ended pod count as well: its sandbox is there until its DEL. */
function interfacesOf({ onHostNetwork, networks = 0 }: ObservedPod): number {
  return onHostNetwork === true ? 0 : 1 + networks;
}

/** The pools with blocks whose addresses the pod has; until it has any, those that it will be served from. */
function homesOf(
  source: NodeNeedsSource,
  pools: readonly Pool[],
  pod: ObservedPod,
): readonly (readonly [Pool, Family])[] {
  const { mirror } = source;
  if (mirror.claimsOfPod(pod.namespace, pod.name).length > 0) return [];
  if (pod.addresses !== undefined) {
    const { addresses } = readTold(pod.addresses.split(","));
    return addresses.flatMap((address) => {
      const [pool, family] = [mirror.poolOf(address), familyOf(address)];
      return pool !== undefined && blockLength(pool, family) !== undefined ? [[pool, family] as const] : [];
    });
  }
  const choice = choiceOf(source, pools, pod);
  if (choice === undefined || isRefusal(choice)) return [];
  return choice.families.flatMap((family) => {
    const home = choice.pools.find((pool) => blockLength(pool, family) !== undefined);
    return home === undefined ? [] : [[home, family] as const];
  });
}

/** Where the pod's agent will serve it from, so far as is known here. */
function choiceOf({ watches }: NodeNeedsSource, pools: readonly Pool[], pod: ObservedPod) {
  const node = watches.nodes.get(pod.node);
  const namespace = watches.namespaces.get(pod.namespace);
  if (node === undefined || namespace === undefined) return undefined;
  const input: ChoiceInput = {
    namespace: namespace.name,
    namespaceLabels: namespace.labels,
    podLabels: {},
    nodeLabels: node.labels,
  };
  return mayBeSelected(pools, input) ? undefined : choosePools(pools, input);
}

/** As its agent sees it: a pod that asks for an address is served by a claim or not at all, but for kube-system's. */
function needsAddress({ node, ended, onHostNetwork, annotations, namespace }: ObservedPod): boolean {
  if (node === "" || ended || onHostNetwork === true) return false;
  if (namespace === EXEMPT_NAMESPACE) return true;
  if (annotations[ASSIGNED_CLAIM] !== undefined) return false;
  const asked = readRequest(annotations);
  return !isRefusal(asked) && !requestsAddress(asked);
}

/** Labels of pods are not kept here, for there may be 100,000: where they may decide, only what is used is counted. */
function mayBeSelected(pools: readonly Pool[], { namespaceLabels, nodeLabels }: ChoiceInput): boolean {
  return pools.some(
    ({ spec }) =>
      spec.podSelector !== undefined &&
      matches(spec.namespaceSelector, namespaceLabels) &&
      matches(spec.nodeSelector, nodeLabels),
  );
}

function usedByNode({
  mirror,
}: NodeNeedsSource): Iterable<readonly [readonly [string, Family, string], number]> {
  const sums = new Map<string, readonly [readonly [string, Family, string], number]>(); // pool/family/node -> used
  for (const { record } of mirror.blocks()) {
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

function* valuesOf<T>(entries: Iterable<readonly [string, T]>): Generator<T, void, void> {
  for (const [, value] of entries) yield value;
}
