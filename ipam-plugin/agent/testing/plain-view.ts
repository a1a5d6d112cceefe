// SPDX-License-Identifier: Apache-2.0

import type { RecordReader } from "../../../allocator/cache/reader.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { type NodeCache, type NodePod, type PodName, podKey } from "../claims/cluster/node-cache.ts";

/** A view of a node that knows what it was told, and so is as far behind as a test wants. */
export class PlainView implements NodeCache {
  isSynced = true;
  readonly #pools: Pick<RecordReader, "poolOf" | "pools">;
  readonly #claims = new Map<string, Stored<"claim">>(); // namespace/name -> claim
  readonly #pods = new Map<string, NodePod>(); // namespace/name -> pod
  readonly #waiting = new Set<() => void>();

  constructor(pools: Pick<RecordReader, "poolOf" | "pools">) {
    this.#pools = pools;
  }

  /** The watch tells of claims, or of one that is bound here no more. */
  seeClaim(key: string, claim: Stored<"claim"> | undefined): void {
    if (claim === undefined) this.#claims.delete(key);
    else this.#claims.set(key, claim);
    this.wake();
  }

  seePod(pod: PodName, now: NodePod | undefined): void {
    if (now === undefined) this.#pods.delete(podKey(pod));
    else this.#pods.set(podKey(pod), now);
    this.wake();
  }

  wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** ADDs that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  pod(pod: PodName): NodePod | undefined {
    return this.#pods.get(podKey(pod));
  }

  claim(key: string): Stored<"claim"> | undefined {
    return this.#claims.get(key);
  }

  claims(): Iterable<Stored<"claim">> {
    return this.#claims.values();
  }

  claimsOf({ namespace, name }: PodName): readonly Stored<"claim">[] {
    return [...this.#claims.values()].filter(
      ({ record }) => record.namespace === namespace && record.binding?.podName === name,
    );
  }

  pools(): Iterable<Pool> {
    return this.#pools.pools();
  }

  poolOf(address: Address): Pool | undefined {
    return this.#pools.poolOf(address);
  }

  async changed(_pod: PodName, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  }
}
