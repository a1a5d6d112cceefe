// SPDX-License-Identifier: Apache-2.0

import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Cidr } from "../ip/address.ts";
import type { Block } from "../model/block.ts";
import type { Pool } from "../pool/pool.ts";
import { retryOnConflict } from "../store/retry-on-conflict.ts";
import type { Store, Stored } from "../store/store.ts";
import { grantInLots } from "./grant-lots.ts";
import type { NodeCidrPlan } from "./node-cidr-plan.ts";
import type { PoolFaults } from "./pool-faults.ts";

type GrantContext = Pick<Context, "store" | "log"> & {
  readonly view: Pick<RecordCache, "reservationCount"> & Pick<RecordReader, "occupants">;
  readonly atOnce?: number;
  /** Of the passes that it is called in. */
  readonly faults: PoolFaults;
};

/**
 * Makes the CIDRs that were planned, and gives each lot that was granted as soon as it is. May be fewer than planned: what is wrong with one
 * pool, or node, says nothing about the next one, and it rests for a while; what is wrong with the store does.
 */
export async function* grantNodeCidrs(
  context: GrantContext,
  { grants }: Pick<NodeCidrPlan, "grants">,
  mayWrite: () => boolean = () => true,
): AsyncGenerator<readonly Stored<"block">[], void, void> {
  const { faults } = context;
  for (const ofPool of Map.groupBy(grants, ({ pool }) => pool.name).values()) {
    const [first] = ofPool;
    if (first === undefined) continue;
    faults.begin(first.pool);
    const words = "CIDRs of a pool cannot be given to nodes";
    for (const { taken: known, ...one } of ofPool)
      yield* grantInLots(context, { ...one, known, words, mayWrite });
    faults.tried(first.pool);
  }
}

/** A CIDR that a node has already, whoever gave it: what of the pool is recorded for it. */
interface CidrTakeOver {
  readonly node: string;
  readonly nodeUID: string;
  readonly cidr: Cidr;
  /** Where its object names it. */
  readonly place?: number;
}

/** A record that keeps the node from being recorded as the owner. */
export interface CidrConflict {
  readonly cidr: string;
  readonly node: string;
  readonly isCooling: boolean;
}

/**
 * Records that the node has the piece, as it does. Granted at once: that somebody has reserved an address of it changes nothing about
 * whose it is, and whoever binds that reservation later finds the record.
 */
export async function takeOver(
  { store }: Pick<Context, "store">,
  pool: Pool,
  { node, nodeUID, cidr: piece, place }: CidrTakeOver,
): Promise<Stored<"block"> | CidrConflict> {
  const use = pool.spec.nodeCIDRs?.use;
  const record: Block = {
    ...{ cidr: piece.text, pool: pool.name, node, nodeUID, holes: [], granted: true },
    ...(use && { use }),
    ...(place !== undefined && { place }),
  };
  const made = await store.create("block", record);
  if (made.kind !== "exists") return made.stored;
  return await ownedAs(store, made.stored, { node, nodeUID, isWritten: true });
}

/**
 * The node's record, which says of which Node object it is: only from then on may that object be told of the CIDR. Whoever takes the
 * record from a node that is gone compares with a revision from before he saw that it was, so one of the two finds the other.
 * `isWritten`: the object names the CIDR already, so that what is not granted yet is its all the same.
 */
export async function ownedAs(
  store: Store,
  seen: Stored<"block">,
  {
    node,
    nodeUID,
    isWritten = false,
  }: Pick<CidrTakeOver, "node" | "nodeUID"> & { readonly isWritten?: boolean },
): Promise<Stored<"block"> | CidrConflict> {
  const change = { kind: "block", key: seen.key, doing: `it was made that of Node ${node}`, seen } as const;
  return await retryOnConflict(store, change, async (now) => {
    if (now === undefined) return { cidr: seen.key, node, isCooling: true };
    const { record } = now;
    if (record.node !== node || record.releasedAt !== undefined || record.use === undefined)
      return { cidr: now.key, node: record.node, isCooling: record.releasedAt !== undefined };
    const next = isWritten ? { ...record, nodeUID, granted: true } : { ...record, nodeUID };
    if (record.nodeUID === nodeUID && record.granted === next.granted) return now;
    const result = await store.replace("block", now, next);
    return result.kind === "replaced" ? result.stored : "conflict";
  });
}

export function isConflict(result: Stored<"block"> | CidrConflict): result is CidrConflict {
  return !("record" in result);
}
