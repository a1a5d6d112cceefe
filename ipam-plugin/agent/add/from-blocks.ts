// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { shortDuration } from "../../../allocator/base/go-duration.ts";
import { type Address, type Family, familyOf, toNumber } from "../../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../../allocator/ip/ip-range.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Pool, RouteSpec } from "../../../allocator/pool/pool.ts";
import type { PoolChoice } from "../../../allocator/pool/pool-choice.ts";
import { type CniError, fromRefusal } from "../../cni/errors.ts";
import type { ResultAddress } from "../../cni/result.ts";
import type { BlockShortage, NodeBlocks } from "../blocks/node-blocks.ts";
import { within } from "../claims/deadline.ts";
import type { Attachment } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError, commitAttachment } from "./commit.ts";

/** An address of each family, each with the pool that it is of. */
export interface BlockResult {
  readonly given: readonly { readonly pool: Pool; readonly address: ResultAddress }[];
}

/** How long an ADD waits for the node's first block of a pool, or for the watch to have listed them. */
const EXPECTED_MS = 5_000;

/** Attaches addresses of this node's blocks: of each family out of the first of the pools that has one. Asks nobody. */
export async function assignFromBlocks(
  ask: AddRequest,
  services: AgentServices,
  { choice, signal }: { readonly choice: PoolChoice; readonly signal: AbortSignal },
): Promise<Attachment | CniError> {
  const pick = () => pickFromBlocks(services.blocks, choice, ask.requested);
  while (!signal.aborted && isRefusal(pick()) && (await services.blockFollower.more()));
  await whileExpected(services, { choice, signal }, () => isRefusal(pick()));
  if (signal.aborted) return cancelledError(ask);
  // from here to the commit nothing waits: two ADDs cannot choose the same
  const picked = pick();
  if (isRefusal(picked)) return fromRefusal(picked);
  const { given } = picked;
  const routes = given.flatMap(({ pool, address }) => routesOf(pool, address.address));
  const dns = given.find(({ pool }) => pool.spec.dns !== undefined)?.pool.spec.dns ?? {};
  return commitAttachment(ask, services, {
    source: "block",
    pool: [...new Set(given.map(({ pool }) => pool.name))].join(","),
    result: {
      addresses: given.map(({ address }) => address),
      routes: routes.length > 0 ? routes : ask.ipam.routes,
      dns: Object.keys(dns).length > 0 ? dns : ask.dns,
    },
  });
}

/** Whether one of the pools has blocks. Others are for claims. */
export function hasBlocks({ pools }: PoolChoice): boolean {
  return pools.some((pool) => pool.families.some((family) => blockLength(pool, family) !== undefined));
}

/** A pod may be faster on its node than the block that is made for it. */
async function whileExpected(
  { blockFollower, clock }: AgentServices,
  { choice, signal }: { readonly choice: PoolChoice; readonly signal: AbortSignal },
  isWithout: () => boolean,
): Promise<void> {
  const isExpecting = () => choice.pools.some(({ name }) => blockFollower.isExpecting(name)) && isWithout();
  if (!isExpecting()) return;
  await within({ ms: EXPECTED_MS, clock, signals: [signal] }, async (late) => {
    while (!late.aborted && isExpecting()) await blockFollower.heard(late);
  });
}

/** All families or none; takes nothing. The refusal says of each pool why it has no address. */
export function pickFromBlocks(
  blocks: NodeBlocks,
  { pools, families }: Pick<PoolChoice, "pools" | "families">,
  requested: readonly Address[],
): BlockResult | Refusal {
  const given: BlockResult["given"][number][] = [];
  for (const family of families) {
    const wanted = requested.find((address) => familyOf(address) === family);
    const refusals: Refusal[] = [];
    let got: BlockResult["given"][number] | undefined;
    for (const pool of pools.filter((one) => blockLength(one, family) !== undefined)) {
      const address = pickFrom(blocks, pool, { family, wanted });
      if (!isRefusal(address)) got ??= { pool, address };
      else refusals.push(address);
      if (got !== undefined) break;
    }
    if (got === undefined) return allOf(refusals, family);
    given.push(got);
  }
  const other = requested.find((wanted) => given.every(({ address }) => address.address !== wanted));
  return other === undefined ? { given } : notFree(pools, other);
}

function allOf(refusals: readonly Refusal[], family: Family): Refusal {
  // one that may pass says more than one that will not
  const last = refusals.find(({ code }) => code === "BLOCKS_EXHAUSTED") ?? refusals[0];
  if (last === undefined) return refuse("FAMILY_UNAVAILABLE", `none of the pools has ${family} blocks`);
  return { ...last, message: refusals.map(({ message }) => message).join("; ") };
}

function pickFrom(
  blocks: NodeBlocks,
  pool: Pool,
  { family, wanted }: { readonly family: Family; readonly wanted: Address | undefined },
): ResultAddress | Refusal {
  const { name, cooldownMs } = pool;
  if (wanted !== undefined && !blocks.isFree(name, wanted, cooldownMs)) return notFree([pool], wanted);
  const got = wanted ?? blocks.pick(name, family, cooldownMs);
  return typeof got === "string" ? resultOf(pool, got) : exhausted(pool, got);
}

function routesOf({ spec: { routes = [] } }: Pool, address: Address): readonly RouteSpec[] {
  return routes.filter(({ dst }) => dst.includes(":") === address.includes(":"));
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

function notFree(pools: readonly Pool[], address: Address): Refusal {
  const name = pools.map((pool) => pool.name).join(", ");
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
      : `, ${cooling} cool, the first for ${shortDuration(Math.ceil(coolsForMs / 1000) * 1000)}`;
  return `the ${family} blocks that this node has of ${about}, ${blocks.join(", ")}, have no free address: ${used} in use${cools}${back}; a controller gives it another block as soon as one is free`;
}
