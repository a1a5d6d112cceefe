// SPDX-License-Identifier: Apache-2.0

import { piecesOf } from "../../../allocator/blocks/cidr-pieces.ts";
import { type CidrConflict, isConflict, takeOver } from "../../../allocator/blocks/node-cidr-grant.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import { type Cidr, parseCidr } from "../../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../../allocator/ip/ip-range.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { ObservedNode } from "../../cluster-state/informers.ts";

export interface TakeOverDeps {
  readonly context: Pick<Context, "store">;
  readonly view: Pick<RecordCache, "block" | "blocks">;
  readonly mayWrite: () => boolean;
  /** Told of each record. */
  readonly keep: (stored: Stored<"block">) => void;
}

/**
 * Records for what a node has already of the pools, whoever gave it: from then on nobody else gets it. Gives words about what is
 * another node's by the records.
 */
export async function takeOverFor(
  deps: TakeOverDeps,
  pools: readonly Pool[],
  node: Pick<ObservedNode, "name" | "uid">,
  cidrs: readonly Cidr[],
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const seen = new Set<string>();
  // recorded in the order in which the object has them, in which an object that is made again has them too
  let next = 0; // an index is less than the place of what stood there before, when others before it have gone
  for (const [index, cidr] of cidrs.entries()) {
    const place = Math.max(index, next);
    for (const pool of pools) {
      const pieces = piecesOf(pool, cidr);
      if (pieces === undefined)
        wrong.push(`${cidr.text} is larger than what a node has of pool "${pool.name}"`);
      for (const piece of pieces ?? []) {
        const key = `${pool.name} ${piece.text}`;
        next = Math.max(next, 1 + placeOf(deps, node.name, piece, place));
        if (seen.has(key) || isOwn(deps, node.name, piece)) continue;
        seen.add(key);
        wrong.push(...(await takeOverPiece(deps, pool, node, { piece, cidr, place })));
      }
    }
  }
  return wrong;
}

function isOwn({ view }: TakeOverDeps, node: string, piece: Cidr): boolean {
  const record = view.block(piece.text)?.record;
  return record?.node === node && record.releasedAt === undefined && record.use === "Cilium";
}

/** The place that it was recorded with, or else this one. */
function placeOf(deps: TakeOverDeps, node: string, piece: Cidr, place: number): number {
  return (isOwn(deps, node, piece) ? deps.view.block(piece.text)?.record.place : undefined) ?? place;
}

async function takeOverPiece(
  { context, view, mayWrite, keep }: TakeOverDeps,
  pool: Pool,
  { name: node, uid: nodeUID }: Pick<ObservedNode, "name" | "uid">,
  { piece, cidr, place }: { readonly piece: Cidr; readonly cidr: Cidr; readonly place: number },
): Promise<readonly string[]> {
  const other = overlapping(view, piece, node);
  if (other !== undefined) return [conflictWords(cidr, { ...other, isCooling: false })];
  if (!mayWrite()) return [];
  const taken = await takeOver(context, pool, { node, nodeUID, cidr: piece, place });
  if (isConflict(taken)) return [conflictWords(cidr, taken)];
  keep(taken);
  return [];
}

/** A record of another size, of a pool that was there before, which another node has. */
function overlapping(view: Pick<RecordCache, "blocks">, piece: Cidr, node: string) {
  const length = `/${piece.prefixLength}`;
  for (const { record } of view.blocks()) {
    const { use, releasedAt, cidr: text } = record;
    if (text.endsWith(length) || record.node === node || use !== "Cilium" || releasedAt !== undefined)
      continue;
    const cidr = parseCidr(text);
    const isOver =
      cidr?.family === piece.family && intersection(fullInterval(cidr), fullInterval(piece)) !== undefined;
    if (isOver) return { cidr: text, node: record.node };
  }
  return undefined;
}

function conflictWords(cidr: Cidr, { cidr: piece, node: owner, isCooling }: CidrConflict): string {
  const what = `${cidr.text} is in this CiliumNode, and ${piece} `;
  if (isCooling) return `${what}was given back by node ${owner} and cools`;
  return `${what}is node ${owner}'s (kubectl get ipblocks); take it out of one of the two CiliumNodes, and start that node's pods again`;
}
