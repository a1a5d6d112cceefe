// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../../allocator/base/ports.ts";
import { isDrained } from "../../../allocator/blocks/drained.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { type Cidr, FAMILIES, parseCidr } from "../../../allocator/ip/address.ts";
import { nodeCidrLength } from "../../../allocator/pool/blocks.ts";
import { matches } from "../../../allocator/pool/label-selector.ts";
import { bySpecificity } from "../../../allocator/pool/node-cidrs.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { ObservedNode } from "../../cluster-state/informers.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import type { Marks, Offer, OwnBlock, Situation } from "./plan.ts";

/** Addresses that a node has before anybody asks, and what it keeps at least when a block goes back. */
const GROW_BELOW = 8;
/** What Cilium calls the pool of pods that name none. */
const DEFAULT_CILIUM_POOL = "default";

type View = Pick<RecordCache, "pools" | "pool" | "poolRecord">;

/** Blocks that are nodes' for Cilium, by their records. */
type OwnedBlocks = ReadonlyMap<string, readonly Stored<"block">[]>; // node -> its blocks

export function ownedBlocks(blocks: Iterable<Stored<"block">>): OwnedBlocks {
  const owned = new Map<string, Stored<"block">[]>();
  for (const stored of blocks) {
    const { use, node, granted, releasedAt } = stored.record;
    if (use !== "Cilium" || granted !== true || releasedAt !== undefined) continue;
    const own = owned.get(node);
    if (own === undefined) owned.set(node, [stored]);
    else own.push(stored);
  }
  return owned;
}

function marksOf({ spec }: Pool): Marks {
  const { growBelow = GROW_BELOW, shrinkAbove } = spec.cilium ?? {};
  return { growBelow, shrinkAbove: Math.max(growBelow, shrinkAbove ?? 2 * growBelow) };
}

export function ciliumPoolOf({ spec }: Pool): string {
  return spec.cilium?.pool ?? DEFAULT_CILIUM_POOL;
}

/** The pools that are for Cilium's nodes, those that ask for most labels first. */
export function ciliumPools(view: View): readonly Pool[] {
  return bySpecificity(view.pools(), "Cilium");
}

/** What a node may have more of. */
export function offersFor(
  pools: readonly Pool[],
  { labels }: Pick<ObservedNode, "labels">,
): readonly Offer[] {
  return pools
    .filter((pool) => !pool.disabled && matches(pool.spec.nodeSelector, labels))
    .flatMap((pool) =>
      FAMILIES.flatMap((family) => {
        const length = nodeCidrLength(pool, family);
        const about = { pool: pool.name, ciliumPool: ciliumPoolOf(pool), marks: marksOf(pool) };
        return length === undefined ? [] : [{ ...about, family, length }];
      }),
    );
}

export function situationOf(
  view: View,
  about: {
    readonly node: CiliumNode;
    readonly offers: readonly Offer[];
    readonly blocks: readonly Stored<"block">[];
    readonly quiet: ReadonlySet<string>;
  },
): Situation {
  const blocks = inOrder(about.blocks).flatMap(({ record }): OwnBlock[] => {
    const cidr = parseCidr(record.cidr);
    if (cidr === undefined) return [];
    const pool = view.pool(record.pool);
    const named = { pool: record.pool, ciliumPool: pool && ciliumPoolOf(pool) };
    const recalled = record.recalledAt !== undefined;
    return [{ cidr, ...named, recalled, drains: isDrained(view, record.pool) }];
  });
  return { ...about, blocks };
}

/**
 * The same order whatever the cache's is, and whatever comes later: the first are filled, the last go back, and an object that is made again
 * has first what it had first. What the object had when it was recorded stands where the object had it; times tell nothing there, for API servers
 * tell seconds apart, by clocks of their own, and a pool may have been made later. What was granted, or recorded by an earlier version, has no
 * place: it was added behind what was there, and stands before what was recorded later only as far as the object had so much there.
 */
function inOrder(blocks: readonly Stored<"block">[]): readonly Stored<"block">[] {
  const placeOf = ({ record }: Stored<"block">) => record.place ?? 0;
  const placed = blocks.filter(({ record }) => record.place !== undefined);
  const granted = blocks.filter(({ record }) => record.place === undefined).toSorted(byGrant);
  const ordered: Stored<"block">[] = [];
  const places = new Set<number>(); // a CIDR of several pieces has one
  let before = 0; // of those that were granted
  for (const block of placed.toSorted((a, b) => placeOf(a) - placeOf(b) || byGrant(a, b))) {
    places.add(placeOf(block));
    const room = placeOf(block) - (places.size - 1);
    const earlier = granted.slice(before, room).filter(({ createdAt }) => createdAt <= block.createdAt);
    ordered.push(...earlier, block);
    before += earlier.length;
  }
  return [...ordered, ...granted.slice(before)];
}

function byGrant(a: Stored<"block">, b: Stored<"block">): number {
  const base = ({ key }: Stored<"block">) => parseCidr(key)?.base ?? 0n;
  return a.createdAt - b.createdAt || (base(a) < base(b) ? -1 : 1);
}

/** What an object says that its node has, whoever wrote it there. */
export function cidrsOf(mode: CiliumMode, node: CiliumNode): readonly Cidr[] {
  const singles = (addresses: ReadonlySet<string>) =>
    [...addresses].map((address) => `${address}/${address.includes(":") ? 128 : 32}`);
  const texts = {
    crd: () => [...node.podCIDRs, ...singles(node.pool), ...singles(node.used)],
    "cluster-pool": () => node.podCIDRs,
    "multi-pool": () => node.allocated.flatMap(({ cidrs }) => cidrs),
  };
  return texts[mode]().flatMap((text) => parseCidr(text) ?? []);
}

/**
 * Since when nothing of a block was used, by one process's own clock. What is said once may be old: only what is said again, after an agent
 * has had time to say otherwise, counts.
 */
export class QuietBlocks {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #afterMs: number;
  readonly #since = new Map<string, number>(); // uid of the record -> when it was first seen so

  constructor(clock: Pick<Clock, "monotonic">, afterMs: number) {
    this.#clock = clock;
    this.#afterMs = afterMs;
  }

  /** Of one node: the CIDRs of those that are quiet for long enough. */
  see(blocks: readonly Stored<"block">[], isUsed: (cidr: Cidr) => boolean): ReadonlySet<string> {
    const now = this.#clock.monotonic();
    const quiet = new Set<string>();
    for (const { uid, record } of blocks) {
      const cidr = parseCidr(record.cidr);
      if (cidr === undefined || isUsed(cidr)) {
        this.#since.delete(uid);
        continue;
      }
      const since = this.#since.get(uid) ?? now;
      this.#since.set(uid, since);
      if (now - since >= this.#afterMs) quiet.add(cidr.text);
    }
    return quiet;
  }

  /** Forgets blocks that are nobody's any more. */
  keepOnly(uids: ReadonlySet<string>): void {
    for (const uid of this.#since.keys()) if (!uids.has(uid)) this.#since.delete(uid);
  }
}
