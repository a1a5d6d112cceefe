// SPDX-License-Identifier: Apache-2.0

import { FAMILIES, type Family, parseCidr } from "../../../allocator/ip/address.ts";
import { type CiliumNode, MARKS } from "./cilium-node.ts";
import {
  type CiliumPlan,
  type Grant,
  grantOf,
  listing,
  type Marks,
  NOTHING,
  type OwnBlock,
  type Situation,
} from "./plan.ts";

/**
 * Mode `cluster-pool`. An agent that says nothing of its CIDRs (1.15 and later) reads `spec.ipam.podCIDRs` once, when it starts, gives pods
 * addresses of the first of each family, and only routes the others: its node has one of each family that the pools have, for as long as it is
 * there; what it had already stays. One that does (`status.ipam.pod-cidrs`, 1.14 and before with mode cluster-pool-v2beta) gets another when
 * all are `depleted`, and gives back those that are `released`: not by that word, after which it may still use them, but once it has read a
 * list without them and says nothing of them any more.
 */
export function planClusterPoolNode(situation: Situation): CiliumPlan {
  const { node, blocks, quiet } = situation;
  const isListed = listing(node.podCIDRs);
  const isSpoken = node.cidrStates.size > 0;
  const stateOf = ({ cidr }: OwnBlock) => node.cidrStates.get(cidr.text);
  const isLeft = (block: OwnBlock) => isSpoken && !isListed(block.cidr) && stateOf(block) === undefined;
  const exact = new Set(node.podCIDRs.flatMap((text) => parseCidr(text)?.text ?? []));
  const released = blocks.filter(({ cidr }) => exact.has(cidr.text) && isReleased(node, cidr.text));
  const recalled = blocks.filter((block) => block.recalled);
  // the node was gone, as it seemed, and came again; or its agent, started anew, uses what it had let go
  const keep = recalled.filter((block) => !isLeft(block) && stateOf(block) !== "released");
  const publishes = blocks.filter((block) => !block.recalled && !isListed(block.cidr));
  const leaving = released.filter((block) => block.recalled);
  return {
    ...NOTHING,
    keep: texts(keep),
    recall: texts(released.filter(({ cidr, recalled: is }) => !is && quiet.has(cidr.text))),
    publishes: texts(publishes),
    adds: { podCIDRs: [...node.podCIDRs, ...texts(publishes)], ...marksIn(situation) },
    edits: { ...listWithout(node, leaving), ...changedMarks(situation) },
    withdraws: texts(recalled.filter(isLeft)),
    grants: grantsFor(situation, publishes),
  };
}

function texts(blocks: readonly OwnBlock[]): readonly string[] {
  return blocks.map(({ cidr }) => cidr.text);
}

function isReleased({ cidrStates }: CiliumNode, text: string): boolean {
  return cidrStates.get(text) === "released";
}

function grantsFor({ node, blocks, offers }: Situation, publishes: readonly OwnBlock[]): readonly Grant[] {
  return FAMILIES.flatMap((family) => {
    const isOf = ({ cidr }: OwnBlock) => cidr.family === family;
    const listed = node.podCIDRs
      .flatMap((text) => parseCidr(text) ?? [])
      .filter((one) => one.family === family);
    const isNew = !blocks.some(isOf) && listed.length === 0;
    const mayGrow = hasSpoken(node, family) && !publishes.some(isOf);
    // one that the agent says nothing of it has not read yet
    const isShort = listed.every(({ text }) =>
      ["depleted", "released"].includes(node.cidrStates.get(text) ?? ""),
    );
    return isNew || (mayGrow && isShort) ? (grantOf(offers, family, 1) ?? []) : [];
  });
}

function hasSpoken({ cidrStates }: CiliumNode, family: Family): boolean {
  return [...cidrStates.keys()].some((text) => parseCidr(text)?.family === family);
}

function listWithout({ podCIDRs }: CiliumNode, leaving: readonly OwnBlock[]) {
  if (leaving.length === 0) return {};
  const gone = new Set(texts(leaving));
  return { podCIDRs: podCIDRs.filter((text) => !gone.has(parseCidr(text)?.text ?? text)) };
}

function marksIn({ offers: [first] }: Situation): Readonly<Record<string, number>> {
  return first === undefined ? {} : named(first.marks);
}

/** Where Cilium's definition has no such fields, what is written there is not kept: there it is not written again. */
function changedMarks({ node: { marks }, offers: [first] }: Situation): Readonly<Record<string, number>> {
  if (marks === undefined || first === undefined) return {};
  const isSame = marks.growBelow === first.marks.growBelow && marks.shrinkAbove === first.marks.shrinkAbove;
  return isSame ? {} : named(first.marks);
}

function named({ growBelow, shrinkAbove }: Marks): Readonly<Record<string, number>> {
  return { [MARKS.growBelow]: growBelow, [MARKS.shrinkAbove]: shrinkAbove };
}
