// SPDX-License-Identifier: Apache-2.0

import {
  type Cidr,
  FAMILIES,
  type Family,
  familyOf,
  fromNumber,
  parseAddress,
  parseCidr,
  toNumber,
} from "../../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../../allocator/ip/ip-range.ts";
import type { CiliumNode, ReleaseState } from "./cilium-node.ts";
import {
  type CiliumPlan,
  grantOf,
  listing,
  type Marks,
  NOTHING,
  type OwnBlock,
  type Situation,
  sizeOfBlock,
} from "./plan.ts";

/** An object lists each of them: 256 of one block, and a few blocks of a node. */
const MOST_LISTED = 256;

/**
 * Mode `crd`: the agent gives addresses of `spec.ipam.pool` and tells in `status.ipam.used` which pods have, 15 s late or more. More come
 * before the last is used. A block goes back only by the agent's own word, address by address: marked-for-release, ready-for-release.
 */
export function planCrdNode(situation: Situation): CiliumPlan {
  const { node, blocks, offers, isOthers = () => false } = situation;
  const seen = blocks.map((block) => new SeenBlock(block, node, isOthers));
  const families = FAMILIES.filter(
    (family) => seen.some((one) => one.family === family) || offers.some((offer) => offer.family === family),
  );
  const amounts = families.map((family) => planAmount(situation, seen, family));
  const keep = [
    ...amounts.flatMap((amount) => amount.keep),
    ...seen.filter((one) => one.recalled && (one.isHeld || one.isForgotten)).map(({ text }) => text),
  ];
  const stay = new Set(keep);
  const leaving = seen.filter((one) => one.recalled && !stay.has(one.text));
  const gone = leaving.filter((one) => one.isLetGo);
  return {
    ...NOTHING,
    keep: [...stay],
    recall: amounts.flatMap(({ recall }) => recall),
    releases: { ...settled(node, seen), ...marked(leaving) },
    ...additions(node, seen),
    withdraws: gone.map(({ text }) => text),
    removes: removals(node, gone),
    grants: amounts.flatMap(({ grants }) => grants),
  };
}

/** A block as its node's object has it. */
class SeenBlock {
  readonly block: OwnBlock;
  readonly addresses: readonly string[];
  readonly listed: readonly string[];
  readonly used: number;
  readonly #node: CiliumNode;

  constructor(block: OwnBlock, node: CiliumNode, isOthers: (address: string) => boolean) {
    const isOwn = (address: string) => node.pool.has(address) || node.used.has(address) || !isOthers(address);
    // what another node has of it stays that one's, whatever the record says
    const addresses = addressesOf(block.cidr, node).filter(isOwn);
    this.block = block;
    this.addresses = addresses;
    this.listed = addresses.filter((address) => node.pool.has(address));
    this.used = addresses.filter((address) => node.used.has(address)).length;
    this.#node = node;
  }

  get text(): string {
    return this.block.cidr.text;
  }

  get family(): Family {
    return this.block.cidr.family;
  }

  get recalled(): boolean {
    return this.block.recalled;
  }

  /** The object names a larger CIDR that it is a part of: as long as that is there it would only come back. */
  get isPart(): boolean {
    const { cidr } = this.block;
    return this.#node.podCIDRs.some((text) => {
      const listed = parseCidr(text);
      return (
        listed?.family === cidr.family &&
        listed.prefixLength < cidr.prefixLength &&
        contains(fullInterval(listed), cidr.base)
      );
    });
  }

  get free(): number {
    return this.addresses.length - this.used;
  }

  /** Its agent uses something of it, or says that it does. */
  get isHeld(): boolean {
    return this.used > 0 || this.addresses.some((address) => this.#state(address) === "do-not-release");
  }

  /** Its agent has said of each address that it gives it to nobody any more. */
  get isLetGo(): boolean {
    return this.addresses.every((address) => this.#isLetGo(address));
  }

  /** The object was made again, and its agent may use what is not listed: it is asked once that is listed again. */
  get isForgotten(): boolean {
    return this.addresses.some((address) => !this.#node.pool.has(address) && !this.#isLetGo(address));
  }

  /** Its agent does not know what it is asked for, nor what it answers. */
  get isMisspelt(): boolean {
    return this.listed.some((address) => this.#node.misspelt.has(address));
  }

  #isLetGo(address: string): boolean {
    if (this.#node.misspelt.has(address)) return false;
    const state = this.#state(address);
    return state === "ready-for-release" || state === "released";
  }

  /** Those that its agent was not asked for yet. */
  get unasked(): readonly string[] {
    return this.listed.filter((address) => this.#state(address) === undefined);
  }

  #state(address: string): string | undefined {
    return this.#node.releases.get(address);
  }
}

/** Those that are listed of it by Berth, and whatever else of it somebody listed before, or the agent uses. */
function addressesOf(cidr: Cidr, { pool, used }: CiliumNode): readonly string[] {
  const { first, last } = fullInterval(cidr);
  const addresses = new Set<string>();
  for (let n = first; n <= last && addresses.size < MOST_LISTED; n++)
    addresses.add(fromNumber(n, cidr.family));
  if (sizeOfBlock(cidr) > MOST_LISTED)
    for (const text of [...pool, ...used]) {
      const address = parseAddress(text);
      if (address === undefined || familyOf(address) !== cidr.family) continue;
      if (contains({ first, last }, toNumber(address))) addresses.add(text);
    }
  return [...addresses];
}

function planAmount(
  { offers, quiet }: Situation,
  seen: readonly SeenBlock[],
  family: Family,
): Pick<CiliumPlan, "keep" | "recall" | "grants"> {
  const own = seen.filter((one) => one.family === family);
  const active = own.filter(({ recalled }) => !recalled);
  const marks: Marks | undefined = offers.find((offer) => offer.family === family)?.marks;
  let free = active.reduce((sum, one) => sum + one.free, 0);
  const { growBelow = 0, shrinkAbove = 0 } = marks ?? {};
  const keep: string[] = [];
  for (const one of own.filter(({ recalled, block }) => recalled && !block.drains)) {
    if (free >= growBelow) break;
    keep.push(one.text);
    free += one.free;
  }
  const grant = free < growBelow ? grantOf(offers, family, growBelow - free) : undefined;
  const recall: string[] = [];
  // those of a pool that is to be emptied first, then the last
  const order = active.toReversed().toSorted((a, b) => Number(b.block.drains) - Number(a.block.drains));
  for (const one of order) {
    const left = free - one.addresses.length;
    if (one.used > 0 || !quiet.has(one.text) || left < growBelow || one.isPart || one.isMisspelt) continue;
    if (!one.block.drains && left < shrinkAbove) continue;
    recall.push(one.text);
    free = left;
  }
  return { keep, recall, grants: grant === undefined ? [] : [grant] };
}

function marked(leaving: readonly SeenBlock[]): Record<string, ReleaseState> {
  return Object.fromEntries(
    leaving.flatMap((one) => one.unasked.map((address) => [address, "marked-for-release"] as const)),
  );
}

/** Entries that came to an end: of what stays, and of what is the node's no more. */
function settled(
  { releases, pool }: CiliumNode,
  seen: readonly SeenBlock[],
): Record<string, ReleaseState | null> {
  const owners = new Map(seen.flatMap((one) => one.addresses.map((address) => [address, one] as const)));
  const changes: Record<string, ReleaseState | null> = {};
  for (const [address, state] of releases) {
    const owner = owners.get(address);
    if (owner !== undefined) {
      if (!owner.recalled) changes[address] = null;
    } else if (!pool.has(address)) {
      // the agent forgets it by itself once it reads that
      if (state === "ready-for-release") changes[address] = "released";
      if (state === "do-not-release") changes[address] = null;
    }
  }
  return changes;
}

/** `podCIDRs` beside `pool`: routes go by the first, pods by the second. */
function additions(node: CiliumNode, seen: readonly SeenBlock[]): Pick<CiliumPlan, "adds" | "publishes"> {
  const pool: Record<string, object> = {};
  const publishes: string[] = [];
  const isRouted = listing(node.podCIDRs);
  const routed = [...node.podCIDRs];
  for (const one of seen.filter(({ recalled }) => !recalled)) {
    const missing = one.addresses.filter((address) => !node.pool.has(address));
    for (const address of missing) pool[address] = {};
    if (!isRouted(one.block.cidr)) routed.push(one.text);
    if (missing.length > 0 || !isRouted(one.block.cidr)) publishes.push(one.text);
  }
  return {
    publishes,
    adds: { pool, ...(routed.length === node.podCIDRs.length ? {} : { podCIDRs: routed }) },
  };
}

function removals(node: CiliumNode, gone: readonly SeenBlock[]): CiliumPlan["removes"] {
  const left = new Set(gone.map(({ text }) => text));
  const podCIDRs = node.podCIDRs.filter((cidr) => !left.has(parseCidr(cidr)?.text ?? cidr));
  const pool = Object.fromEntries(gone.flatMap(({ listed }) => listed.map((address) => [address, null])));
  return { pool, ...(podCIDRs.length === node.podCIDRs.length ? {} : { podCIDRs }) };
}
