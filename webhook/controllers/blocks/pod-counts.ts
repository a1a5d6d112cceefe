// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { type Family, familyOf } from "../../../allocator/ip/address.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { parseAddresses } from "../../../allocator/model/interfaces.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Informers, ObservedPod } from "../../cluster-state/informers.ts";
import { interfacesOf, isServed, needsAddress } from "./pod-interfaces.ts";

type View = Pick<RecordCache, "poolOf" | "claimsOfPod">;

interface Watches {
  readonly pods: Pick<Informers["pods"], "all" | "get">;
}

/** A pool with blocks, by its name, and the family of an address of it. */
type PoolHome = readonly [pool: string, family: Family];

/** Pods that are alike as far as their count goes. */
interface PodGroup {
  readonly node: string;
  /** Of each of them. */
  readonly interfaces: number;
  /** What their first interfaces have addresses of, as those of pods that ask for nothing; undefined: nothing, or not as such pods. */
  readonly homes: readonly PoolHome[] | undefined;
  readonly pods: number;
}

interface Group extends Omit<PodGroup, "pods"> {
  /** What makes them alike, once for all of them. */
  readonly alike: string;
  pods: number;
}

/** Pods that are looked at in one go, in some ms: others have their turn between. */
const SLICE = 500;

/**
 * How many pods of each kind there are on each node, kept by what has changed: there may be 100,000, and to look at all of them takes
 * seconds. Each is looked at again after a change of itself, of a claim that may be its own, or of a pool.
 */
export class PodCounts {
  readonly #cache: View;
  readonly #watches: Watches;
  readonly #groups = new Map<string, Group>(); // by what makes their pods alike
  readonly #groupOf = new Map<string, Group>(); // key of a pod -> its group
  readonly #unaddressed = new Set<string>(); // keys of pods that may wait for an address
  readonly #changed = new Set<string>(); // keys of pods
  /** Undefined: nothing is counted. */
  #isCurrent: boolean | undefined;

  constructor(cache: View, watches: Watches) {
    this.#cache = cache;
    this.#watches = watches;
  }

  /** Hears of changes, until the function that is returned is called. */
  follow(cache: Pick<RecordCache, "onChange">, pods: Pick<Informers["pods"], "onChange">): () => void {
    const ends = [
      pods.onChange((key) => this.#see(key)),
      cache.onChange("claim", (key, now, before) => {
        this.#see(key);
        for (const claim of [now?.record, before?.record]) this.#see(boundTo(claim));
      }),
      cache.onChange("pool", (_, now, before) => {
        const isSame = isDeepStrictEqual(now?.record, before?.record);
        if (!isSame && this.#isCurrent !== undefined) this.#isCurrent = false;
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  /** To be called between updates. */
  forget(): void {
    this.#isCurrent = undefined;
    for (const all of [this.#groups, this.#groupOf, this.#unaddressed, this.#changed]) all.clear();
  }

  /** Looks at what has changed. Until it was looked at, each pod counts as it was. */
  async update(rest: () => Promise<void>): Promise<void> {
    if (this.#isCurrent !== true) for (const [key] of this.#watches.pods.all()) this.#changed.add(key);
    this.#isCurrent = true;
    let n = 0;
    for (const key of [...this.#changed]) {
      if (++n % SLICE === 0) await rest();
      this.#look(key);
      this.#changed.delete(key); // it was read in the same turn
    }
  }

  groups(): Iterable<PodGroup> {
    return this.#groups.values();
  }

  /** Those on nodes that have no address and are not on their hosts' networks. */
  *unaddressed(): Generator<ObservedPod, void, void> {
    for (const key of this.#unaddressed) {
      const pod = this.#watches.pods.get(key);
      if (pod !== undefined && pod.addresses === undefined) yield pod;
    }
  }

  #see(key: string | undefined): void {
    if (key !== undefined && this.#isCurrent !== undefined) this.#changed.add(key);
  }

  #look(key: string): void {
    this.#leave(key);
    const pod = this.#watches.pods.get(key);
    if (pod === undefined) return;
    if (pod.addresses === undefined && isServed(pod)) this.#unaddressed.add(key);
    const homes = this.#homesOf(pod);
    const { node } = pod;
    const interfaces = interfacesOf(pod);
    const alike = `${node} ${interfaces} ${homes?.map((home) => home.join("/")).join() ?? "none"}`;
    const group = this.#groups.get(alike) ?? { alike, node, interfaces, homes, pods: 0 };
    group.pods++;
    this.#groups.set(alike, group);
    this.#groupOf.set(key, group);
  }

  #leave(key: string): void {
    this.#unaddressed.delete(key);
    const group = this.#groupOf.get(key);
    if (group === undefined) return;
    this.#groupOf.delete(key);
    if (--group.pods === 0) this.#groups.delete(group.alike);
  }

  #homesOf(pod: ObservedPod): readonly PoolHome[] | undefined {
    if (pod.addresses === undefined || !needsAddress({ cache: this.#cache }, pod)) return undefined;
    const { addresses } = parseAddresses(pod.addresses.split(","));
    return addresses.flatMap((address) => {
      const [pool, family] = [this.#cache.poolOf(address), familyOf(address)];
      return pool !== undefined && blockLength(pool, family) !== undefined
        ? [[pool.name, family] as const]
        : [];
    });
  }
}

/** The key of the pod that it is bound to, or held for. */
function boundTo(claim: Claim | undefined): string | undefined {
  return claim?.binding && `${claim.namespace}/${claim.binding.podName}`;
}
