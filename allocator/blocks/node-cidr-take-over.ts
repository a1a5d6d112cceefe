// SPDX-License-Identifier: Apache-2.0

import { type Cidr, parseCidr } from "../ip/address.ts";
import type { Pool } from "../pool/pool.ts";
import type { Store, Stored } from "../store/store.ts";
import { piecesOf } from "./cidr-pieces.ts";
import { type CidrConflict, isConflict, takeOver } from "./node-cidr-grant.ts";

/** A CIDR of a Node that cannot be recorded as its. */
export interface CidrCollision {
  readonly node: string;
  readonly nodeUID: string;
  /** As the Node says it. */
  readonly cidr: string;
  readonly pool: string;
  /** What is recorded as another's; absent: it is so large that it must be a mistake. */
  readonly with?: CidrConflict;
}

interface CidrsSeen {
  /** Every record of a CIDR of a Node, by CIDR. */
  readonly known: ReadonlyMap<string, Stored<"block">>;
  readonly pools: readonly Pool[];
  readonly keep: (stored: Stored<"block">) => void;
  /** Whether the Node that a record names is there and does not say that it has the CIDR, read from the API server. */
  readonly isLeft: (owner: string, cidr: string) => Promise<boolean>;
  readonly mayWrite: () => boolean;
}

interface Owner {
  readonly node: string;
  readonly nodeUID: string;
}

/** Records what a Node has by its spec and not yet by a record, in each pool that it lies in; one that lies in none is nobody's matter. */
export async function takeOverAll(
  { store }: { readonly store: Store },
  seen: CidrsSeen,
  node: { readonly name: string; readonly uid: string; readonly podCIDRs: readonly string[] },
): Promise<readonly CidrCollision[]> {
  const collisions: CidrCollision[] = [];
  for (const text of node.podCIDRs) {
    const found = await takeOverOne(store, seen, { node: node.name, nodeUID: node.uid, text });
    if (found !== undefined) collisions.push(found);
  }
  return collisions;
}

async function takeOverOne(
  store: Store,
  seen: CidrsSeen,
  { node, nodeUID, text }: Owner & { readonly text: string },
): Promise<CidrCollision | undefined> {
  const cidr = parseCidr(text);
  if (cidr === undefined) return undefined;
  for (const pool of seen.pools) {
    const about = { node, nodeUID, cidr: text, pool: pool.name };
    const pieces = pool.spec.nodeCIDRs?.use === "PodCIDR" ? piecesOf(pool, cidr) : [];
    if (pieces === undefined) return about;
    for (const piece of pieces) {
      const conflict = await record(store, seen, { pool, piece, node, nodeUID });
      if (conflict !== undefined) return { ...about, with: conflict };
    }
  }
  return undefined;
}

/** Gives what keeps it from being recorded as the node's. */
async function record(
  store: Store,
  { known, keep, isLeft, mayWrite }: CidrsSeen,
  { pool, piece, node, nodeUID }: Owner & { readonly pool: Pool; readonly piece: Cidr },
): Promise<CidrConflict | undefined> {
  const stored = known.get(piece.text);
  const there = stored?.record;
  const isHeld = there !== undefined && there.releasedAt === undefined;
  if (isHeld && there.node !== node) {
    if (!mayWrite() || !(await isLeft(there.node, piece.text)))
      return { cidr: piece.text, node: there.node, isCooling: false };
    // its owner joined again, or was not told yet, and finds another one: the record says who has it
    const passed = await store.replace("block", stored as Stored<"block">, {
      ...there,
      node,
      nodeUID,
      granted: true,
    });
    if (passed.kind === "replaced") keep(passed.stored);
    return undefined;
  }
  if ((isHeld && there.nodeUID === nodeUID && there.granted === true) || !mayWrite()) return undefined;
  const result = await takeOver({ store }, pool, { node, nodeUID, cidr: piece });
  if (isConflict(result)) return result;
  keep(result);
  return undefined;
}
