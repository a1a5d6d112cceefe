// SPDX-License-Identifier: Apache-2.0

import { firstOf } from "../../allocator/blocks/give-back.ts";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import { compareAddresses, parseAddress } from "../../allocator/ip/address.ts";
import { sizeOf } from "../../allocator/ip/ip-range.ts";
import { type Block, isReturned, returnedOf } from "../../allocator/model/block.ts";
import { blockManifest, nameOfBlock } from "../apply/manifest.ts";
import { ageOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";
import { allWithCooldown, type Cooled, coolingWords } from "./reservations.ts";

export const blocks = listing<Cooled<"block">>({
  names: ["blocks", "block", "ipblocks", "ipblock"],
  noun: "block",
  scope: "cluster",
  async load({ store }) {
    const all = await allWithCooldown(store, "block", firstOf);
    return all.sort((a, b) => compareFirst(a.stored.record, b.stored.record));
  },
  keyOf: ({ stored }) => ({ namespace: "", name: nameOfBlock(stored) }),
  manifest: ({ stored }) => blockManifest(stored),
  columns: ({ now }) => [
    { title: "CIDR", cell: ({ stored }) => stored.key },
    { title: "POOL", cell: ({ stored }) => stored.record.pool },
    { title: "NODE", cell: ({ stored }) => stored.record.node },
    { title: "STATE", cell: ({ stored, cooldownMs }) => blockState(stored.record, cooldownMs) },
    { title: "USE", cell: ({ stored }) => stored.record.use ?? "pods" },
    { title: "USED", cell: ({ stored }) => usedIn(stored.record) },
    { title: "OF", cell: ({ stored }) => String(usableIn(stored.record)) },
    { title: "HOLES", wide: true, cell: ({ stored }) => stored.record.holes.join(", ") },
    { title: "WITHIN", wide: true, cell: ({ stored }) => stored.record.within ?? "" },
    { title: "AGE", cell: ({ stored }) => ageOf(stored.createdAt, now) },
  ],
});

/** `owned`, or what its owner or Berth is about to do with it. */
function blockState(block: Block, cooldownMs: number | undefined): string {
  // addresses of it that are blocks of their own keep it
  if (block.releasedAt !== undefined && block.division !== undefined) return "divided";
  if (block.releasedAt !== undefined) return coolingWords(block.releasedAt, cooldownMs);
  if (isReturned(block)) return "returned";
  if (block.granted !== true) return "being granted";
  return block.recalledAt === undefined ? "owned" : "asked back";
}

/** An agent that has said nothing yet has given nothing; what a node's own network gives nobody tells. */
function usedIn({ use, granted, status }: Block): string {
  const unsaid = use === undefined && granted === true ? 0 : "";
  return String(status?.used ?? unsaid);
}

function usableIn(block: Block): bigint {
  const owned = ownedIn(block).intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n);
  return owned - BigInt(returnedOf(block).length);
}

function compareFirst(a: Block, b: Block): number {
  const [one, other] = [a, b].map(({ cidr }) => parseAddress(cidr.slice(0, cidr.indexOf("/"))));
  return one === undefined || other === undefined ? 0 : compareAddresses(one, other);
}
