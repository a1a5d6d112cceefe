// SPDX-License-Identifier: Apache-2.0

import { isStoreFault } from "../base/errors.ts";
import { ownedIn } from "../cache/block-index.ts";
import type { Context } from "../cache/context.ts";
import { type Family, familyOf, fromNumber, parseCidr, toNumber } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import {
  fullInterval,
  type Interval,
  intersection,
  merge,
  numbersOf,
  sizeOf,
  without,
} from "../ip/ip-range.ts";
import { type Block, holesOf, isReturned, MOST_RETURNED, returnedOf } from "../model/block.ts";
import { intervalsOf, type Pool, unavailableByDefault } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import type { BlockPlan, NodeNeed } from "./block-plan.ts";
import { divide } from "./give-back.ts";
import { grantSingle } from "./grant.ts";
import { type Divisible, planGrants, planRequests } from "./single-plan.ts";

export interface SinglesInput {
  readonly pool: Pool;
  readonly family: Family;
  /** All of the family, with those within others. */
  readonly blocks: readonly Stored<"block">[];
  readonly nodes: readonly NodeNeed[];
  readonly short: BlockPlan["short"];
  /** Reserved, in a node's block, or not to be given at all. */
  readonly unpickable: IntervalSet;
  /** Blocks whose owners were asked and have not answered. */
  readonly unanswered: { has(block: Stored<"block">): boolean };
}

type Deps = Pick<Context, "store"> & { readonly mayWrite: () => boolean };

/** A block of several addresses that may be divided, and what of it is ready. */
interface Candidate extends Divisible {
  readonly stored: Stored<"block">;
  readonly addresses: readonly Interval[];
}

/** Told of a node that cannot have a single address, and why: that says nothing of the next one's. */
type Refused = (need: NodeNeed, fault: unknown) => void;

/** Gives single addresses that are ready to nodes whose pods lack some while no block is free (ADR 0025). */
export async function grantSingles(
  deps: Deps & { readonly refused: Refused },
  input: SinglesInput,
): Promise<readonly Stored<"block">[]> {
  const candidates = candidatesIn(input);
  const grants = planGrants({ short: shortOf(input), blocks: candidates });
  return await grantAll(deps, input.pool, grants, byCidrOf(candidates));
}

/** Does what asks the block's owner, or withdraws that; what is wrong with one block says nothing of the next one. */
type Asking = (block: Stored<"block">, ask: () => Promise<void>) => Promise<void>;
type AskDeps = Deps & { readonly asking: Asking };

/**
 * Asks owners of blocks that are partly used for single addresses: for what nodes lack still, and what does not come back whole. Gives
 * the nodes that are asked and have some.
 */
export async function askForSingles(
  deps: AskDeps,
  input: SinglesInput,
  coming: number,
): Promise<readonly string[]> {
  if (input.short.length === 0) {
    await withdrawRequests(deps, input.blocks);
    return [];
  }
  const candidates = candidatesIn(input);
  const asks = planRequests({ short: shortOf(input), coming, blocks: candidates, spareOf: sparesOf(input) });
  const byCidr = byCidrOf(candidates);
  const isComing = ({ recalled, unused }: Candidate) => recalled > 0 && unused > 0;
  const asked = new Set(candidates.filter(isComing).flatMap(({ node }) => node ?? []));
  for (const { cidr, addresses } of asks) {
    const one = byCidr.get(cidr);
    if (one?.node === undefined || !deps.mayWrite()) continue;
    const all = returnedOf(one.stored.record).length + one.recalled + addresses;
    await deps.asking(one.stored, () => ask(deps, one.stored, all));
    asked.add(one.node);
  }
  return [...asked];
}

function shortOf({ short, nodes }: SinglesInput) {
  const byName = new Map(nodes.map((need) => [need.node, need]));
  return short.flatMap(({ node, missing }) => {
    const need = byName.get(node);
    return need === undefined ? [] : [{ need, missing }];
  });
}

function byCidrOf(candidates: readonly Candidate[]): ReadonlyMap<string, Candidate> {
  return new Map(candidates.map((one) => [one.cidr, one]));
}

async function grantAll(
  { store, mayWrite, refused }: Deps & { readonly refused: Refused },
  pool: Pool,
  grants: readonly { readonly need: NodeNeed; readonly cidr: string }[],
  candidates: ReadonlyMap<string, Candidate>,
): Promise<readonly Stored<"block">[]> {
  const granted: Stored<"block">[] = [];
  const left = new Map<string, Iterator<bigint>>(); // CIDR of a block -> addresses of it that are ready
  const divided = new Set<string>();
  for (const { need, cidr } of grants) {
    const one = candidates.get(cidr);
    const family = parseCidr(cidr)?.family;
    if (one === undefined || family === undefined || !mayWrite()) continue;
    const numbers = left.get(cidr) ?? numbersOf(one.addresses);
    left.set(cidr, numbers);
    const n = numbers.next();
    if (n.done === true) continue;
    const { record } = one.stored;
    const isDivided = record.division !== undefined || divided.has(cidr);
    if (!isDivided && (await divide(store, one.stored, "returned")) === "changed") continue;
    divided.add(cidr);
    const request = { within: cidr, address: fromNumber(n.value, family), ...need };
    const made = await grantSingle({ store }, pool, request).catch((fault: unknown) => {
      if (isStoreFault(fault)) throw fault;
      return void refused(need, fault);
    });
    if (made !== undefined) granted.push(made);
  }
  return granted;
}

/** Nobody lacks an address any more: what was not given back yet stays with its owner. */
async function withdrawRequests(
  { store, mayWrite, asking }: AskDeps,
  blocks: readonly Stored<"block">[],
): Promise<void> {
  for (const stored of blocks) {
    const { recalledAddresses = 0 } = stored.record;
    const returned = returnedOf(stored.record).length;
    if (recalledAddresses > returned && mayWrite())
      await asking(stored, () => ask({ store }, stored, returned));
  }
}

async function ask({ store }: Pick<Deps, "store">, seen: Stored<"block">, addresses: number): Promise<void> {
  const recalledAddresses = Math.min(addresses, MOST_RETURNED);
  if (seen.record.recalledAddresses === recalledAddresses) return;
  await store.replace("block", seen, { ...seen.record, recalledAddresses });
}

function candidatesIn({ pool, family, blocks, unpickable, unanswered }: SinglesInput): readonly Candidate[] {
  const singles = new IntervalSet();
  for (const { record } of blocks) if (record.within !== undefined) singles.addInterval(wholeOf(record));
  const open = without(merge(intervalsOf(pool, family)), unavailableByDefault(pool, family));
  return blocks.flatMap((stored) => {
    const { record } = stored;
    if (record.within !== undefined || record.granted !== true || record.division === "closed") return [];
    const isOwned = record.releasedAt === undefined && !isReturned(record);
    // it goes whole, as soon as it has cooled
    if (!isOwned && record.division === undefined) return [];
    const addresses = readyIn(record, { open, singles, unpickable, family });
    const returned = returnedOf(record).length;
    const { used = 0 } = record.status?.node === record.node ? record.status : {};
    const isExpected = record.recalledAt !== undefined && used === 0; // whole
    const room = isExpected ? 0 : MOST_RETURNED - returned;
    return {
      ...{
        stored,
        addresses,
        cidr: stored.key,
        node: isOwned ? record.node : undefined,
        ready: countOf(addresses),
      },
      unused: Math.min(room, Math.max(0, countOf(ownedIn(record).intervals) - returned - used)),
      recalled: Math.max(0, (record.recalledAddresses ?? 0) - returned),
      overdue: unanswered.has(stored),
    };
  });
}

interface Ground {
  readonly open: readonly Interval[];
  /** Addresses that are blocks already. */
  readonly singles: IntervalSet;
  readonly unpickable: IntervalSet;
  readonly family: Family;
}

/** What may be a block of its own: as `mayBeSingle` says, that is none yet, and that nobody has reserved. */
function readyIn(block: Block, { open, singles, unpickable, family }: Ground): readonly Interval[] {
  if (block.holes.length === 0 && block.division !== "all" && returnedOf(block).length === 0) return [];
  const holes = within(holesOf(block), open);
  const owned =
    block.division === "all"
      ? ownedIn(block).intervals
      : merge(
          returnedOf(block)
            .filter((address) => familyOf(address) === family)
            .map((address) => ({ first: toNumber(address), last: toNumber(address) })),
        );
  return without(merge([...without(holes, unpickable), ...within(owned, open)]), singles);
}

function within(intervals: Iterable<Interval>, open: readonly Interval[]): readonly Interval[] {
  return merge([...intervals].flatMap((one) => open.flatMap((other) => intersection(one, other) ?? [])));
}

/** Addresses of each node's blocks that its pods do not need. */
function sparesOf({ blocks, nodes }: SinglesInput): (node: string) => number {
  const spare = new Map(nodes.map(({ node, pods }) => [node, -pods]));
  for (const { record } of blocks) {
    if (record.releasedAt !== undefined || isReturned(record)) continue;
    const own = countOf(ownedIn(record).intervals) - returnedOf(record).length;
    spare.set(record.node, (spare.get(record.node) ?? 0) + own);
  }
  return (node) => spare.get(node) ?? 0;
}

function wholeOf({ cidr }: Block): Interval {
  const network = parseCidr(cidr);
  return network === undefined ? { first: 0n, last: -1n } : fullInterval(network);
}

function countOf(intervals: readonly Interval[]): number {
  return Number(intervals.reduce((sum, interval) => sum + sizeOf(interval), 0n));
}
