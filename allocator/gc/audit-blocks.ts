// SPDX-License-Identifier: Apache-2.0
import { isOwnedIn, ownedIn } from "../cache/block-index.ts";
import { type Family, fromNumber, parseAddress, parseCidr } from "../ip/address.ts";
import { type Interval, intersection, without } from "../ip/ip-range.ts";
import { isDetached } from "../lifecycle/bind.ts";
import { type Block, mayBeSingle } from "../model/block.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import { cutLength } from "../pool/blocks.ts";
import { givenIn, type Pool } from "../pool/pool.ts";
import type { AuditedAttachment } from "./audited-attachment.ts";
import { defect, type Finding, pending } from "./finding.ts";

/** What is wrong with the blocks of nodes, and between them and fixed addresses (ADR 0020). */
export function auditBlocks(
  blocks: readonly Block[],
  claims: readonly Claim[],
  pools: readonly Pool[],
): Finding[] {
  return [
    ...blocks.flatMap((block) => auditBlock(block, pools, blocks)),
    ...overlaps(blocks.filter(({ within }) => within === undefined)),
    ...blocks.flatMap((block) => sharedWith(block, claims)),
  ];
}

/** An address of its own: the block that it lies in is there as long as it is, and nobody gives it from that. */
function auditSingle({ cidr, node, within, granted }: Block, blocks: readonly Block[]): Finding[] {
  if (granted !== true)
    return [pending("ungranted-block", cidr, `block ${cidr} is being granted to node ${node}`)];
  const around = blocks.find((one) => one.cidr === within);
  const address = parseAddress(cidr.split("/")[0] ?? "");
  // one that is closed while there is an address of it that is a block is opened again
  const open = around?.division === "closed" ? { ...around, division: "all" as const } : around;
  if (open !== undefined && address !== undefined && mayBeSingle(open, address)) return [];
  const words = `block ${cidr} of node ${node} is of block ${within}, which ${around === undefined ? "is not there" : "has not given it back"}`;
  return [defect("stray-block", cidr, words)];
}

/**
 * A pool that is shortened keeps what nodes have; a block that was granted at that moment may be left outside. Its node is asked
 * for it, and has its addresses for itself until it gives it back.
 */
function outsideOf(pool: Pool, block: Block): Finding | undefined {
  if (block.releasedAt !== undefined) return undefined;
  const { cidr, node, recalledAt } = block;
  const { family, intervals } = ownedIn(block);
  const [first] = without(intervals, givenIn(pool, family));
  if (first === undefined) return undefined;
  const words = `block ${cidr} of node ${node} has ${fromNumber(first.first, family)}, which pool ${pool.name} does not give`;
  if (recalledAt === undefined) return defect("stray-block", cidr, words);
  return pending("stray-block", cidr, `${words}; the node is asked to give it back once nobody uses it`);
}

function auditBlock(block: Block, pools: readonly Pool[], blocks: readonly Block[]): Finding[] {
  const { cidr, node } = block;
  const home = pools.find(({ name }) => name === block.pool);
  const network = parseCidr(cidr);
  const length = home && network && cutLength(home, network.family);
  if (block.within !== undefined) return auditSingle(block, blocks);
  if (length === undefined || length !== network?.prefixLength) {
    const why = home === undefined ? "which is not there" : "whose blocks have another size";
    return [defect("stray-block", cidr, `block ${cidr} of node ${node} is of pool ${block.pool}, ${why}`)];
  }
  const outside = home && outsideOf(home, block);
  if (outside !== undefined) return [outside];
  if (block.granted === true) return [];
  const words = `block ${cidr} is being granted to node ${node}`;
  return [pending("ungranted-block", cidr, words)];
}

/**
 * Blocks of pools with different sizes may lie in each other, as long as what one has is a hole of the other. In the order of their
 * first addresses neighbours suffice, as long as what reaches furthest is remembered.
 */
function overlaps(blocks: readonly Block[]): Finding[] {
  const findings = new Map<string, Finding>(); // both CIDRs -> finding
  const parts = blocks.filter(({ cidr }) => parseCidr(cidr) !== undefined).flatMap(partsOf);
  const furthest = new Map<Family, (typeof parts)[number]>(); // family -> what reaches furthest so far
  for (const one of parts.toSorted((a, b) => (a.interval.first < b.interval.first ? -1 : 1))) {
    const other = furthest.get(one.family);
    if (other !== undefined && intersection(other.interval, one.interval) !== undefined)
      findings.set(`${other.cidr} ${one.cidr}`, shareAddresses(other.cidr, one.cidr));
    if (other === undefined || one.interval.last > other.interval.last) furthest.set(one.family, one);
  }
  return [...findings.values()];
}

function partsOf(block: Block): readonly { family: Family; interval: Interval; cidr: string }[] {
  const { family, intervals } = ownedIn(block);
  return intervals.map((interval) => ({ family, interval, cidr: block.cidr }));
}

function shareAddresses(cidr: string, other: string): Finding {
  return defect("block-overlap", other, `blocks ${cidr} and ${other} share addresses`);
}

/** What sandboxes have by blocks, of which no node's block has it any more. */
export function auditBlockUse(
  attachments: readonly AuditedAttachment[],
  blocks: readonly Block[],
): Finding[] {
  const held = blocks.filter(({ releasedAt }) => releasedAt === undefined);
  return attachments.flatMap(({ ofBlocksOf, addresses, containerID, interface: name, node }) => {
    const strayed = addresses.filter((address) => !held.some((block) => isOwnedIn(block, address)));
    return (ofBlocksOf === undefined ? [] : strayed).map((address) => {
      const words = `address ${address} is used by ${containerID} ${name} on ${node}, which has it of pool ${ofBlocksOf}, and no node has a block with it`;
      return defect("outside-block", address, words);
    });
  });
}

/** A claim that is bound is a defect; one that nobody uses was left by a crash, and is given up. */
function sharedWith(block: Block, claims: readonly Claim[]): Finding[] {
  if (block.granted !== true) return [];
  return claims.flatMap((claim) => {
    const address =
      claim.releasing === true ? undefined : claim.addresses.find((one) => isOwnedIn(block, one));
    if (address === undefined) return [];
    const key = claimKey(claim);
    const words = `claim ${key} lists ${address}, which node ${block.node} may give to others from its block ${block.cidr}`;
    return [isDetached(claim) ? pending("in-block", address, words) : defect("in-block", address, words)];
  });
}
