// SPDX-License-Identifier: Apache-2.0

import { type Cidr, FAMILIES, type Family, parseCidr } from "../../../allocator/ip/address.ts";
import type { Allocation, CiliumNode } from "./cilium-node.ts";
import {
  type CiliumPlan,
  grantOf,
  listing,
  NOTHING,
  type Offer,
  type OwnBlock,
  type Situation,
  sizeOfBlock,
} from "./plan.ts";

/**
 * Mode `multi-pool`: the agent says in `spec.ipam.pools.requested` how many addresses of each pool it needs. CIDRs are added to `allocated`
 * until they suffice; the agent alone takes them out again, when it uses none of their addresses. One that is out goes back.
 */
export function planMultiPoolNode(situation: Situation): CiliumPlan {
  const { node, offers } = situation;
  const isListed = listing(node.allocated.flatMap(({ cidrs }) => cidrs));
  const pools = new Set([
    ...offers.map(({ ciliumPool }) => ciliumPool),
    ...node.requested.map(({ pool }) => pool),
  ]);
  const plans = [...pools].flatMap((pool) =>
    FAMILIES.map((family) => planPool(situation, { pool, family, isListed })),
  );
  const known = new Set(plans.flatMap(({ blocks }) => blocks));
  // of a pool that is disabled, for other nodes now, or gone: what is listed stays as long as the agent has it
  const strays = situation.blocks.filter((block) => !known.has(block));
  const untold = isSpoken(node)
    ? []
    : strays.filter(({ cidr, ciliumPool }) => ciliumPool !== undefined && !isListed(cidr));
  const publishes = [
    ...plans.flatMap((plan) => plan.publishes),
    ...untold.filter(({ recalled }) => !recalled),
  ];
  const spare = isSpoken(node) ? [...plans.flatMap((plan) => plan.spare), ...strays] : [];
  const back = spare.filter(({ cidr }) => !isListed(cidr));
  return {
    ...NOTHING,
    keep: [
      ...plans.flatMap((plan) => plan.keep),
      ...untold.filter(({ recalled }) => recalled),
      ...situation.blocks.filter(({ cidr, recalled }) => recalled && isListed(cidr)),
    ].map(({ cidr }) => cidr.text),
    recall: back
      .filter(({ cidr, recalled }) => !recalled && situation.quiet.has(cidr.text))
      .map(({ cidr }) => cidr.text),
    withdraws: back.filter(({ recalled }) => recalled).map(({ cidr }) => cidr.text),
    publishes: publishes.map(({ cidr }) => cidr.text),
    adds: { pools: { allocated: withBlocks(node, publishes) } },
    grants: plans.flatMap(({ grants }) => grants),
    wrong: plans.flatMap(({ wrong }) => wrong),
  };
}

/** An agent writes both lists at once: until it has, the object may have been made again, and what is not listed may be in use. */
function isSpoken({ requested }: CiliumNode): boolean {
  return requested.length > 0;
}

interface PoolPlan extends Pick<CiliumPlan, "grants" | "wrong"> {
  readonly blocks: readonly OwnBlock[];
  readonly publishes: readonly OwnBlock[];
  readonly keep: readonly OwnBlock[];
  /** Those that the need does not call for. */
  readonly spare: readonly OwnBlock[];
}

function planPool(
  { node, blocks, offers }: Situation,
  {
    pool,
    family,
    isListed,
  }: {
    readonly pool: string;
    readonly family: Family;
    readonly isListed: (cidr: Cidr) => boolean;
  },
): PoolPlan {
  const open = offers.filter((offer) => offer.ciliumPool === pool);
  const own = blocks.filter(
    (block) => block.cidr.family === family && open.some((offer) => offer.pool === block.pool),
  );
  const entry = node.allocated.find((one) => one.pool === pool);
  const needed = node.requested.find((one) => one.pool === pool)?.needed[family] ?? 0;
  const has = (block: OwnBlock) => usableIn(block.cidr, entry);
  let lacks = needed - listedIn(entry, family);
  const take = (block: OwnBlock): boolean => {
    if (isSpoken(node) && (lacks <= 0 || block.drains)) return false;
    lacks -= has(block);
    return true;
  };
  const outside = own.filter(({ cidr }) => !isListed(cidr));
  const publishes = outside.filter((block) => !block.recalled && take(block));
  const keep = outside.filter((block) => block.recalled && take(block));
  const spare = outside.filter((block) => !publishes.includes(block) && !keep.includes(block));
  const fits = open.filter((offer) => offer.family === family && usableIn(offerBlock(offer), entry) > 0);
  const grant =
    lacks > 0 ? grantOf(fits, family, lacks, (offer) => usableIn(offerBlock(offer), entry)) : undefined;
  const wrong = lacks > 0 && grant === undefined ? [lackWords(lacks, family, pool, open)] : [];
  return { blocks: own, publishes, keep, spare, grants: grant === undefined ? [] : [grant], wrong };
}

function lackWords(lacks: number, family: Family, ciliumPool: string, open: readonly Offer[]): string {
  const requested = `${lacks} ${family} addresses of pool "${ciliumPool}" are requested`;
  const small = open.find((offer) => offer.family === family);
  if (small === undefined)
    return `${requested}, and no IPPool for Cilium that is open to this node has CIDRs of that name`;
  return `${requested}, and IPPool "${small.pool}" gives CIDRs of /${small.length}, of which Cilium gives pods none in this mode; make a pool of larger ones`;
}

/** Whoever put it there: that is what the agent counts too. */
function listedIn(entry: Allocation | undefined, family: Family): number {
  const cidrs = (entry?.cidrs ?? []).flatMap((text) => parseCidr(text) ?? []);
  return cidrs.filter((cidr) => cidr.family === family).reduce((sum, cidr) => sum + usableIn(cidr, entry), 0);
}

function offerBlock({ family, length }: Offer) {
  return { family, prefixLength: length };
}

/** Cilium's agent gives neither the first nor the last address of a CIDR, unless the entry says so. */
function usableIn(
  cidr: Parameters<typeof sizeOfBlock>[0],
  entry: Pick<Allocation, "allowFirstIP" | "allowLastIP"> | undefined,
): number {
  const lost = (entry?.allowFirstIP === true ? 0 : 1) + (entry?.allowLastIP === true ? 0 : 1);
  return Math.max(0, sizeOfBlock(cidr) - lost);
}

function withBlocks({ allocated }: CiliumNode, added: readonly OwnBlock[]): readonly Allocation[] {
  const list = allocated.map((entry) => ({ ...entry, cidrs: [...entry.cidrs] }));
  for (const { cidr, pool, ciliumPool: name = pool } of added) {
    const entry = list.find((one) => one.pool === name);
    if (entry === undefined) list.push({ pool: name, cidrs: [cidr.text] });
    else entry.cidrs.push(cidr.text);
  }
  return list;
}
