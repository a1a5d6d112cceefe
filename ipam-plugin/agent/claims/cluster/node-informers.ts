// SPDX-License-Identifier: Apache-2.0

import type { Clock, Labels, Logger, Random } from "../../../../allocator/base/ports.ts";
import type { Address } from "../../../../allocator/ip/address.ts";
import { type Pool, poolOf } from "../../../../allocator/pool/pool.ts";
import { storedOf } from "../../../../allocator/store/kubernetes/objects.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import type { Connection } from "../../../../kube/api/connection.ts";
import { BLOCKS, CLAIMS, NAMESPACES, NODES, PODS, POOLS } from "../../../../kube/api/resource.ts";
import { Reflector } from "../../../../kube/watch/reflector.ts";
import type { WatchMetrics } from "../../../../kube/watch/watch-metrics.ts";
import type { OwnNode, PodFacts, PoolOwner } from "../../blocks/block-source.ts";
import { type NodeCache, type NodePod, type PodName, podKey } from "./node-cache.ts";
import { labelsOf, nodePod, type SeenNode, type SeenPool, seenNode, seenPool } from "./node-projections.ts";

/** The index of claims by the pod that they are bound to. */
const BY_POD = "pod";

interface NodeInformersOptions {
  readonly connection: Connection;
  readonly node: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told how the watches are. */
  readonly health?: WatchMetrics;
}

/** What has changed, for whoever looks at claims. Handlers only enqueue. */
interface NodeInformersHandlers {
  claim(key: string, now: Stored<"claim"> | undefined): void;
  /** Of a pod whose claims these are. */
  pod(claims: readonly string[]): void;
}

/**
 * The pods, the claims and the blocks of one node, and all pools: what stays in memory does not grow with the cluster, but
 * for the labels of namespaces where a pool asks for them.
 */
export class NodeInformers implements NodeCache {
  readonly #pods: Reflector<NodePod>;
  readonly #claims: Reflector<Stored<"claim">>;
  readonly #pools: Reflector<SeenPool>;
  readonly #blocks: Reflector<Stored<"block">>;
  readonly #namespaces: Reflector<Labels>;
  readonly #nodes: Reflector<SeenNode>;
  readonly #clock: Clock;
  /** Monotonic: since when the Node object of now is seen. */
  #nodeSince = 0;
  readonly #nodeWanted = Promise.withResolvers<true>();
  readonly #namespacesWanted = Promise.withResolvers<true>();
  readonly #waiting = new Map<string, Set<() => void>>(); // namespace/name of a pod -> who waits for a change of it
  readonly synced: Promise<void>;

  constructor({ node, ...about }: NodeInformersOptions) {
    this.#pods = new Reflector({
      ...about,
      resource: PODS,
      selection: { fieldSelector: `spec.nodeName=${node}` },
      project: nodePod,
    });
    this.#claims = new Reflector({
      ...about,
      resource: CLAIMS,
      selection: { fieldSelector: `spec.binding.node=${node}` },
      project: (item) => storedOf("claim", item),
      indexes: { [BY_POD]: (claim) => podOf(claim).map(podKey) },
    });
    this.#pools = new Reflector({ ...about, resource: POOLS, project: seenPool });
    this.#blocks = new Reflector({
      ...about,
      resource: BLOCKS,
      selection: { fieldSelector: `spec.node=${node}` },
      project: (item) => storedOf("block", item),
    });
    this.#namespaces = new Reflector({ ...about, resource: NAMESPACES, project: labelsOf });
    this.#nodes = new Reflector({
      ...about,
      resource: NODES,
      selection: { fieldSelector: `metadata.name=${node}` },
      project: seenNode,
    });
    this.#clock = about.clock;
    this.#nodes.onChange((_, now, before) => {
      if (now !== undefined && now.uid !== before?.uid) this.#nodeSince = about.clock.monotonic();
    });
    this.#pods.onChange((key) => this.#wake(key));
    this.#claims.onChange((_, now) => {
      for (const pod of now === undefined ? [] : podOf(now)) this.#wake(podKey(pod));
    });
    this.synced = this.#whenSynced();
  }

  get isSynced(): boolean {
    return this.#pods.isSynced && this.#claims.isSynced && this.#pools.isSynced;
  }

  /** Blocks are asked about apart: claims are served all the same where they cannot be listed. */
  get areBlocksSynced(): boolean {
    return this.#blocks.isSynced && this.#pools.isSynced;
  }

  /** Blocks for pods whose record names this node: a CIDR of the node is for whoever reads it from the cluster's objects. */
  *blocks(): Generator<Stored<"block">, void, void> {
    for (const stored of valuesOf(this.#blocks)) if (stored.record.use === undefined) yield stored;
  }

  pool(name: string): Pool | undefined {
    return this.#pools.get(name)?.pool;
  }

  *pools(): Generator<Pool, void, void> {
    for (const { pool } of valuesOf(this.#pools)) yield pool;
  }

  /** Who has blocks of the pool, as its status says. */
  ownersOf(pool: string): readonly PoolOwner[] {
    return this.#pools.get(pool)?.owners ?? [];
  }

  /** This node's Node object, so far as it is known. */
  ownNode(): OwnNode | undefined {
    const [node] = [...valuesOf(this.#nodes)];
    if (node === undefined) return undefined;
    const { uid, fenced } = node;
    return { uid, fenced, seenForMs: this.#clock.monotonic() - this.#nodeSince };
  }

  /** Follows the Node object from now on, also while no pool has blocks. */
  followNode(): void {
    this.#nodeWanted.resolve(true);
  }

  /** Follows the namespaces from now on: a pool that only the journal knows may ask for their labels. */
  followNamespaces(): void {
    this.#namespacesWanted.resolve(true);
  }

  /** Labels of a pod of this node, of its namespace and of the node: those that are known. */
  factsOf(ref: PodName & { readonly uid: string }): PodFacts {
    const pod = this.pod(ref);
    const isIts = pod !== undefined && (ref.uid === "" || pod.uid === ref.uid);
    const namespaceLabels = this.#namespaces.get(ref.namespace);
    const [{ labels: nodeLabels } = {}] = [...valuesOf(this.#nodes)];
    return {
      ...(isIts && { podLabels: pod.labels, podAnnotations: pod.annotations }),
      ...(namespaceLabels && { namespaceLabels }),
      ...(nodeLabels && { nodeLabels }),
    };
  }

  /** Calls the handler at every change of what `factsOf` says. */
  onFacts(handler: () => void): void {
    for (const known of [this.#pods, this.#namespaces, this.#nodes]) known.onChange(handler);
  }

  /** Calls the handler at every change of a block, a pool or the Node object's UID or fence, and when blocks and pools were listed. */
  onBlocks(handler: () => void): void {
    this.#blocks.onChange(handler);
    this.#pools.onChange(handler);
    this.#nodes.onChange((_, now, before) => {
      if (now?.uid !== before?.uid || now?.fenced !== before?.fenced) handler();
    });
    void Promise.all([this.#blocks.synced, this.#pools.synced]).then(handler);
  }

  /** How many claims are bound to this node. */
  get size(): number {
    return this.#claims.size;
  }

  pod(pod: PodName): NodePod | undefined {
    return this.#pods.get(podKey(pod));
  }

  claim(key: string): Stored<"claim"> | undefined {
    return this.#claims.get(key);
  }

  *claims(): Generator<Stored<"claim">, void, void> {
    for (const [, claim] of this.#claims.all()) yield claim;
  }

  claimsOf(pod: PodName): readonly Stored<"claim">[] {
    return this.#claims.by(BY_POD, podKey(pod));
  }

  poolOf(address: Address): Pool | undefined {
    return poolOf(this.pools(), address);
  }

  async changed(pod: PodName, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const key = podKey(pod);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiters = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiters.add(resolve));
    const abort = () => resolve();
    signal.addEventListener("abort", abort, { once: true });
    await promise;
    signal.removeEventListener("abort", abort);
    waiters.delete(resolve);
    if (waiters.size === 0 && this.#waiting.get(key) === waiters) this.#waiting.delete(key);
  }

  onChange(handlers: NodeInformersHandlers): void {
    this.#claims.onChange((key, now) => handlers.claim(key, now));
    this.#pods.onChange((_, now, before) => {
      const pod = now ?? before;
      if (pod !== undefined) handlers.pod(this.claimsOf(pod).map(({ key }) => key));
    });
  }

  /** Follows until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const followed = [this.#pods, this.#claims, this.#pools, this.#blocks];
    const isCut = this.#whenPool(isCutIntoBlocks, signal);
    const isNodeWanted = Promise.race([isCut, this.#nodeWanted.promise]);
    const selects = this.#whenPool(selectsNamespaces, signal);
    const areNamespacesWanted = Promise.race([
      isCut.then((is) => is && selects),
      this.#namespacesWanted.promise,
    ]);
    await Promise.all([
      ...followed.map((reflector) => reflector.run(signal)),
      areNamespacesWanted.then((are) => (are ? this.#namespaces.run(signal) : undefined)),
      isNodeWanted.then((is) => (is ? this.#nodes.run(signal) : undefined)),
    ]);
  }

  /** Resolves with the first pool of which it holds. False: the signal aborted. */
  async #whenPool(holds: (pool: Pool) => boolean, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    // only at the pool that has changed: to look at all of them each time takes seconds where there are thousands
    const stop = this.#pools.onChange((_, now) => {
      if (now !== undefined && holds(now.pool)) resolve(true);
    });
    if ([...this.pools()].some(holds)) resolve(true);
    signal.addEventListener("abort", () => resolve(false), { once: true });
    const found = await promise;
    stop();
    return found;
  }

  async #whenSynced(): Promise<void> {
    await Promise.all([this.#pods.synced, this.#claims.synced, this.#pools.synced]);
    for (const key of this.#waiting.keys()) this.#wake(key);
  }

  #wake(pod: string): void {
    for (const resolve of this.#waiting.get(pod) ?? []) resolve();
  }
}

/** Before a pool has blocks, no labels decide anything here. */
function isCutIntoBlocks({ spec }: Pool): boolean {
  return spec.blockSize !== undefined;
}

/** Where none does, the cluster's namespaces, which may be thousands, are nothing to an agent. */
function selectsNamespaces({ spec }: Pool): boolean {
  return spec.namespaceSelector !== undefined;
}

function podOf({ record }: Stored<"claim">): readonly PodName[] {
  const { namespace, binding } = record;
  return binding === undefined ? [] : [{ namespace, name: binding.podName }];
}

function* valuesOf<P>(reflector: Reflector<P>): Generator<P, void, void> {
  for (const [, value] of reflector.all()) yield value;
}
