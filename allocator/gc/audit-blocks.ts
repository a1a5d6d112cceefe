// SPDX-License-Identifier: Apache-2.0
import { isOwnedIn } from "../cache/block-index.ts";
import { type Family, parseAddress, parseCidr } from "../ip/address.ts";
import { fullInterval, type Interval, intersection } from "../ip/ip-range.ts";
import { isDetached } from "../lifecycle/bind.ts";
import { type Block, mayBeSingle } from "../model/block.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import { blockLength } from "../pool/blocks.ts";
import type { Pool } from "../pool/pool.ts";
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

function auditBlock(block: Block, pools: readonly Pool[], blocks: readonly Block[]): Finding[] {
  const { cidr, node } = block;
  const home = pools.find(({ name }) => name === block.pool);
  const network = parseCidr(cidr);
  const length = home && network && blockLength(home, network.family);
  if (block.within !== undefined) return auditSingle(block, blocks);
  if (length === undefined || length !== network?.prefixLength) {
    const why = home === undefined ? "which is not there" : "whose blocks have another size";
    return [defect("stray-block", cidr, `block ${cidr} of node ${node} is of pool ${block.pool}, ${why}`)];
  }
  if (block.granted === true) return [];
  const words = `block ${cidr} is being granted to node ${node}`;
  return [pending("ungranted-block", cidr, words)];
}

/** In the order of their first addresses neighbours suffice, as long as the one that reaches furthest is remembered. */
function overlaps(blocks: readonly Block[]): Finding[] {
  const findings: Finding[] = [];
  const known: { family: Family; interval: Interval; cidr: string }[] = blocks.flatMap(({ cidr }) => {
    const network = parseCidr(cidr);
    return network === undefined ? [] : [{ family: network.family, interval: fullInterval(network), cidr }];
  });
  const furthest = new Map<Family, (typeof known)[number]>(); // family -> the block that reaches furthest so far
  for (const one of known.toSorted((a, b) => (a.interval.first < b.interval.first ? -1 : 1))) {
    const other = furthest.get(one.family);
    if (other !== undefined && intersection(other.interval, one.interval) !== undefined)
      findings.push(
        defect("block-overlap", one.cidr, `blocks ${other.cidr} and ${one.cidr} share addresses`),
      );
    if (other === undefined || one.interval.last > other.interval.last) furthest.set(one.family, one);
  }
  return findings;
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
