// SPDX-License-Identifier: Apache-2.0

import { bitsOf, type Cidr, type Family, parseCidr } from "../../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../../allocator/ip/ip-range.ts";
import type { CiliumNode, ReleaseState } from "./cilium-node.ts";

/** A block that is the node's by Berth's records: granted, and not given back. */
export interface OwnBlock {
  readonly cidr: Cidr;
  readonly pool: string;
  /** What Cilium calls the pool; of mode multi-pool. Undefined: nobody can say, as the pool is gone or cannot be read. */
  readonly ciliumPool: string | undefined;
  /** It is on its way back: nothing of it is published again before that is undone in the record. */
  readonly recalled: boolean;
  /** Its pool is disabled or gone. */
  readonly drains: boolean;
}

/** When a node gets more, and when less: in addresses that its agent has and nobody uses. */
export interface Marks {
  readonly growBelow: number;
  readonly shrinkAbove: number;
}

/** A pool that the node may have CIDRs of. */
export interface Offer {
  readonly pool: string;
  /** What Cilium calls it; of mode multi-pool. */
  readonly ciliumPool: string;
  readonly family: Family;
  readonly length: number;
  readonly marks: Marks;
}

/** All that decides about one CiliumNode. */
export interface Situation {
  readonly node: CiliumNode;
  readonly blocks: readonly OwnBlock[];
  /** In the order in which they are tried. */
  readonly offers: readonly Offer[];
  /** CIDRs of blocks of which nothing was used at two looks, far enough apart. */
  readonly quiet: ReadonlySet<string>;
  /** Whether another CiliumNode lists or uses the address; absent: none does. */
  readonly isOthers?: (address: string) => boolean;
}

/** Addresses that the node lacks, of the first of the pools that has any. */
export interface Grant {
  readonly family: Family;
  readonly pools: readonly string[];
  readonly addresses: number;
  /** How many of them a block of the first pool has. */
  readonly blockSize: number;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * What is to be done, in this order, and each against what was seen. Only records decide whose an address is: a block is published after its
 * record was read, and given back after it was recalled and the CiliumNode was written without it.
 */
export interface CiliumPlan {
  /** Blocks whose recall is undone. */
  readonly keep: readonly string[];
  /** Blocks that shall go back. */
  readonly recall: readonly string[];
  /** Of `status.ipam.release-ips`; null: the entry goes. */
  readonly releases: Readonly<Record<string, ReleaseState | null>>;
  /** Blocks of which `adds` says something. */
  readonly publishes: readonly string[];
  /** Of `spec.ipam`, as a merge patch. */
  readonly adds: Json;
  /** Of `spec.ipam`, as a merge patch: what neither gives a node a block nor gives one back. */
  readonly edits: Json;
  /** Blocks of which nothing is left once `removes` is written. */
  readonly withdraws: readonly string[];
  /** Of `spec.ipam`, as a merge patch. */
  readonly removes: Json;
  readonly grants: readonly Grant[];
  /** What a person must know or do. */
  readonly wrong: readonly string[];
}

export const NOTHING: CiliumPlan = {
  keep: [],
  recall: [],
  releases: {},
  publishes: [],
  adds: {},
  edits: {},
  withdraws: [],
  removes: {},
  grants: [],
  wrong: [],
};

export function sizeOfBlock({ family, prefixLength }: Pick<Cidr, "family" | "prefixLength">): number {
  return 2 ** (bitsOf(family) - prefixLength);
}

/** The pools that have CIDRs of the family, as a request names them; undefined: none has. */
export function grantOf(
  offers: readonly Offer[],
  family: Family,
  addresses: number,
  usable: (offer: Offer) => number = ({ length }) => sizeOfBlock({ family, prefixLength: length }),
): Grant | undefined {
  const open = offers.filter((offer) => offer.family === family);
  const [first] = open;
  if (first === undefined) return undefined;
  return { family, pools: open.map(({ pool }) => pool), addresses, blockSize: usable(first) };
}

/** Whether a block is among the CIDRs, by itself, as a part of one or in pieces: somebody else may have cut them. */
export function listing(texts: readonly string[]): (cidr: Cidr) => boolean {
  const exact = new Set(texts);
  const listed = texts.flatMap((text) => parseCidr(text) ?? []);
  return (cidr) =>
    exact.has(cidr.text) ||
    listed.some(
      (one) =>
        one.family === cidr.family && intersection(fullInterval(one), fullInterval(cidr)) !== undefined,
    );
}
