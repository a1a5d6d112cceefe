// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { formatDuration } from "../../../allocator/base/go-duration.ts";
import { type Address, familyOf, toNumber } from "../../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../../allocator/ip/ip-range.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { type CniError, fromRefusal } from "../../cni/errors.ts";
import type { ResultAddress } from "../../cni/result.ts";
import type { BlockShortage } from "../blocks/node-blocks.ts";
import { within } from "../claims/deadline.ts";
import type { Attachment } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError, commitAttachment } from "./commit.ts";

type Blocks = Pick<AgentServices, "blocks" | "blockFollower">;

/** One address of each family that the pool has blocks of: all or none. */
export interface BlockResult {
  readonly pool: Pool;
  readonly addresses: readonly ResultAddress[];
}

/** How long an ADD waits for the node's first block of a pool, or for the watch to have listed them. */
const EXPECTED_MS = 5_000;

/** Attaches addresses of this node's blocks: of the first of the pools that has them. Asks nobody. */
export async function assignFromBlocks(
  ask: AddRequest,
  services: AgentServices,
  { pools, signal }: { readonly pools: readonly string[]; readonly signal: AbortSignal },
): Promise<Attachment | CniError> {
  await whileExpected(
    services,
    signal,
    () => isRefusal(pickFromBlocks(services, pools, ask.requested)),
    pools,
  );
  if (signal.aborted) return cancelledError(ask);
  // from here to the commit nothing waits: two ADDs cannot choose the same
  const pick = pickFromBlocks(services, pools, ask.requested);
  if (isRefusal(pick)) return fromRefusal(pick);
  const { pool, addresses } = pick;
  const { routes = [], dns = {} } = pool.spec;
  const families = new Set(addresses.map(({ address }) => familyOf(address)));
  const own = routes.filter(({ dst }) => families.has(dst.includes(":") ? "IPv6" : "IPv4"));
  return commitAttachment(ask, services, {
    source: "block",
    pool: pool.name,
    result: {
      addresses,
      routes: own.length > 0 ? own : ask.ipam.routes,
      dns: Object.keys(dns).length > 0 ? dns : ask.dns,
    },
  });
}

/**
 * Whether the pod is served out of blocks of one of the pools. What is not known of them is waited for. Throws NOT_READY when it
 * does not come: it may be that the pod must get its address from there.
 */
export async function isServedFromBlocks(
  { blockFollower, clock }: AgentServices,
  pools: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  const known = () => pools.map((name) => blockFollower.hasBlocks(name));
  if (!known().includes(true) && known().includes(undefined)) {
    await within({ ms: EXPECTED_MS, clock, signals: [signal] }, async (late) => {
      while (!late.aborted && !known().includes(true) && known().includes(undefined))
        await blockFollower.heard(late);
    });
  }
  if (known().includes(true)) return true;
  if (!known().includes(undefined)) return false;
  const words = `pools ${pools.join(", ")} are not loaded on this node: the API server has not answered since the agent started; try again`;
  throw new BerthError("NOT_READY", words, { details: { pool: pools.join(",") } });
}

/** A pod may be faster on its node than the block that is made for it. */
async function whileExpected(
  { blockFollower, clock }: AgentServices,
  signal: AbortSignal,
  isWithout: () => boolean,
  pools: readonly string[],
): Promise<void> {
  const isExpecting = () => pools.some((name) => blockFollower.isExpecting(name)) && isWithout();
  if (!isExpecting()) return;
  await within({ ms: EXPECTED_MS, clock, signals: [signal] }, async (late) => {
    while (!late.aborted && isExpecting()) await blockFollower.heard(late);
  });
}

/** Takes nothing. The refusal says of each pool why it has none. */
export function pickFromBlocks(
  services: Blocks,
  pools: readonly string[],
  requested: readonly Address[],
): BlockResult | Refusal {
  const refusals: Refusal[] = [];
  for (const name of pools) {
    const got = pickFrom(services, name, requested);
    if (!isRefusal(got)) return got;
    refusals.push(got);
  }
  const [first, ...others] = refusals;
  if (first === undefined) return refuse("POOL_UNKNOWN", "no pool is named");
  const words = refusals.map(({ message }) => message).join("; ");
  // one that may pass says more than one that will not
  const last = others.find(({ code }) => code === "BLOCKS_EXHAUSTED") ?? first;
  return { ...last, message: words };
}

function pickFrom(
  { blocks, blockFollower }: Blocks,
  name: string,
  requested: readonly Address[],
): BlockResult | Refusal {
  const pool = blockFollower.pool(name);
  if (pool === undefined) return refuse("POOL_UNKNOWN", `there is no pool "${name}"`, { pool: name });
  const families = pool.families.filter((family) => blockLength(pool, family) !== undefined);
  const addresses: ResultAddress[] = [];
  for (const family of families) {
    const wanted = requested.find((address) => familyOf(address) === family);
    if (wanted !== undefined && !blocks.isFree(name, wanted, pool.cooldownMs)) return notFree(pool, wanted);
    const got = wanted ?? blocks.pick(name, family, pool.cooldownMs);
    if (typeof got !== "string") return exhausted(pool, got);
    const reached = resultOf(pool, got);
    if (isRefusal(reached)) return reached;
    addresses.push(reached);
  }
  const other = requested.find((wanted) => addresses.every(({ address }) => address !== wanted));
  if (other !== undefined) return notFree(pool, other);
  return addresses.length > 0 ? { pool, addresses } : withoutBlocks(name);
}

/** What may be given is in the record alone; how it is reached is for the pool to say. */
function resultOf(pool: Pool, address: Address): ResultAddress | Refusal {
  const [family, n] = [familyOf(address), toNumber(address)];
  const range = pool.ranges.find((one) => one.family === family && contains(fullInterval(one.cidr), n));
  if (range === undefined) {
    const words = `address ${address} of a block is in no network of pool "${pool.name}" any more; put its range back`;
    return refuse("ADDRESS_OUTSIDE", words, { address, pool: pool.name });
  }
  const { prefixLength, gateway } = range;
  return { address, prefixLength, ...(gateway === undefined ? {} : { gateway }) };
}

function withoutBlocks(name: string): Refusal {
  const words = `pool "${name}" has no blocks, and an agent claims no addresses: ask for one with berth.dev/pools: ${name}`;
  return refuse("CLAIM_MISSING", words, { pool: name });
}

function notFree({ name }: Pool, address: Address): Refusal {
  const words = `${address}, which the runtime asks for, is no free address of this node's blocks of pool "${name}"`;
  return refuse("ADDRESS_TAKEN", words, { address, pool: name });
}

function exhausted(pool: Pool, shortage: BlockShortage): Refusal {
  const { name } = pool;
  return refuse("BLOCKS_EXHAUSTED", wordsOf(pool, shortage), { pool: name, family: shortage.family });
}

function wordsOf(pool: Pool, shortage: BlockShortage): string {
  const { blocks, used, cooling, coolsForMs, family, returning } = shortage;
  const about = `pool "${pool.name}"`;
  const back = returning.length === 0 ? "" : ` (${returning.join(", ")} is being given back)`;
  if (blocks.length === 0)
    return `this node has no ${family} block of ${about}, whose blocks are /${blockLength(pool, family) ?? ""}${back}; a controller gives it one as soon as one is free: kubectl get ipblocks says who has them`;
  const cools =
    cooling === 0
      ? ""
      : `, ${cooling} cool, the first for ${formatDuration(Math.ceil(coolsForMs / 1000) * 1000)}`;
  return `the ${family} blocks that this node has of ${about}, ${blocks.join(", ")}, have no free address: ${used} in use${cools}${back}; a controller gives it another block as soon as one is free`;
}
