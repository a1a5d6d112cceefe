// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { shortDuration } from "../../../allocator/base/go-duration.ts";
import { listed } from "../../../allocator/base/listed.ts";
import { type Address, type Family, familyOf, toNumber } from "../../../allocator/ip/address.ts";
import { contains, fullInterval } from "../../../allocator/ip/ip-range.ts";
import { blockLength } from "../../../allocator/pool/blocks.ts";
import type { Pool, RouteSpec } from "../../../allocator/pool/pool.ts";
import type { PoolChoice } from "../../../allocator/pool/pool-choice.ts";
import { type CniError, fromRefusal } from "../../cni/errors.ts";
import type { ResultAddress } from "../../cni/result.ts";
import type { PoolOwner } from "../blocks/block-source.ts";
import type { BlockShortage, NodeBlocks } from "../blocks/node-blocks.ts";
import { within } from "../claims/deadline.ts";
import type { Attachment } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError, commitAttachment } from "./commit.ts";

/** What an address is picked by. */
interface KnownBlocks {
  readonly blocks: NodeBlocks;
  ownersOf(pool: string): readonly PoolOwner[];
  /** This host makes its blocks itself: there is no controller, and no other node. */
  readonly makesBlocks?: boolean;
  /** It gives from no block until the fence is gone. */
  readonly isFenced?: boolean;
  /** A refusal may name nodes and blocks. */
  readonly refusalsNameAll?: boolean;
}

/** An address of each family, each with the pool that it is of. */
interface BlockResult {
  readonly given: readonly { readonly pool: Pool; readonly address: ResultAddress }[];
}

/** How long an ADD waits for a block that a controller grants, or for the watch to have listed them. */
const EXPECTED_MS = 5_000;
/** How often it looks by itself: of an address that a DEL frees, or that cools no more, nothing is heard. */
const LOOK_MS = 1_000;
/** Nodes that a refusal names. */
const NAMED = 5;

/** Attaches addresses of this node's blocks: of each family out of the first of the pools that has one. Asks nobody. */
export async function assignFromBlocks(
  addRequest: AddRequest,
  services: AgentServices,
  { choice, signal }: { readonly choice: PoolChoice; readonly signal: AbortSignal },
): Promise<Attachment | CniError> {
  const { blocks, blockFollower } = services;
  const ownersOf = (pool: string) => blockFollower.ownersOf(pool);
  const { makesBlocks, refusalsNameAll } = blockFollower;
  const known = () => ({ blocks, ownersOf, makesBlocks, refusalsNameAll, isFenced: blockFollower.isFenced });
  const pick = () => pickFromBlocks(known(), choice, addRequest.requested);
  const names = choice.pools.map(({ name }) => name);
  while (!signal.aborted && isRefusal(pick()) && (await blockFollower.more(names)));
  /** From the choice to the commit nothing waits: two ADDs cannot choose the same. */
  const attempt = () => {
    if (signal.aborted) return cancelledError(addRequest);
    const picked = pick();
    return isRefusal(picked) ? picked : commitPicked(addRequest, services, picked);
  };
  const first = attempt();
  const got = isRefusal(first) && !makesBlocks ? await whileExpected(services, signal, attempt) : await first;
  return isRefusal(got) ? fromRefusal(got) : got;
}

async function commitPicked(
  addRequest: AddRequest,
  services: AgentServices,
  { given }: BlockResult,
): Promise<Attachment> {
  const routes = given.flatMap(({ pool, address }) => routesOf(pool, address.address));
  const dns = given.find(({ pool }) => pool.spec.dns !== undefined)?.pool.spec.dns ?? {};
  return await commitAttachment(addRequest, services, {
    source: "block",
    pool: [...new Set(given.map(({ pool }) => pool.name))].join(","),
    result: {
      addresses: given.map(({ address }) => address),
      routes: routes.length > 0 ? routes : addRequest.ipam.routes,
      dns: Object.keys(dns).length > 0 ? dns : addRequest.dns,
    },
  });
}

/**
 * A pod may be faster on its node than the block that is made for it. Whoever finds that another one has taken what came waits on: of
 * a node's pods that start at once each has its address as soon as there is one for it.
 */
async function whileExpected<T>(
  { blockFollower, clock }: AgentServices,
  signal: AbortSignal,
  attempt: () => T | Refusal,
): Promise<Awaited<T> | Refusal> {
  return await within({ ms: EXPECTED_MS, clock, signals: [signal] }, async (late) => {
    for (;;) {
      await within({ ms: LOOK_MS, clock, signals: [late] }, (look) => blockFollower.heard(look));
      const got = attempt();
      if (late.aborted || !isRefusal(got)) return await got;
    }
  });
}

/** All families or none; takes nothing. The refusal says of each pool why it has no address. */
function pickFromBlocks(
  known: KnownBlocks,
  { pools, families }: Pick<PoolChoice, "pools" | "families">,
  requested: readonly Address[],
): BlockResult | Refusal {
  const given: BlockResult["given"][number][] = [];
  for (const family of families) {
    const wanted = requested.find((address) => familyOf(address) === family);
    const refusals: Refusal[] = [];
    let got: BlockResult["given"][number] | undefined;
    for (const pool of pools.filter((one) => blockLength(one, family) !== undefined)) {
      const address = pickFrom(known, pool, { family, wanted });
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
  { blocks, ownersOf, makesBlocks, isFenced, refusalsNameAll: isNamed = false }: KnownBlocks,
  pool: Pool,
  { family, wanted }: { readonly family: Family; readonly wanted: Address | undefined },
): ResultAddress | Refusal {
  const { name, cooldownMs } = pool;
  if (wanted !== undefined && !blocks.isFree(name, wanted, cooldownMs)) return notFree([pool], wanted);
  const got = wanted ?? blocks.pick(name, family, cooldownMs);
  if (typeof got !== "string" && isFenced === true) return fenced(pool, family);
  return typeof got === "string"
    ? resultOf(pool, got)
    : exhausted(pool, got, {
        isNamed,
        next: makesBlocks === true ? ON_ONE_HOST : nextOf(ownersOf(name), got, isNamed),
      });
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

interface Said {
  readonly isNamed: boolean;
  readonly next: string;
}

function exhausted(pool: Pool, shortage: BlockShortage, { isNamed, next }: Said): Refusal {
  const { name } = pool;
  const words = `${wordsOf(pool, shortage, isNamed)}; ${next}`;
  return refuse("BLOCKS_EXHAUSTED", words, { pool: name, family: shortage.family });
}

function fenced({ name }: Pool, family: Family): Refusal {
  const words = `this node is fenced, so it gives no ${family} address of pool "${name}": its Node has the annotation berth.dev/fenced or the taint node.kubernetes.io/out-of-service, by which somebody vouches that nothing runs here; take that away once it is well`;
  return refuse("BLOCKS_EXHAUSTED", words, { pool: name, family });
}

function wordsOf(
  pool: Pool,
  { blocks, used, cooling, coolsForMs, family, returning }: BlockShortage,
  isNamed: boolean,
): string {
  const about = `pool "${pool.name}", whose blocks are /${blockLength(pool, family) ?? ""}`;
  const back =
    returning.length === 0 ? "" : ` (${isNamed ? returning.join(", ") : "one"} is being given back)`;
  if (blocks.length === 0) return `this node has no ${family} block of ${about}${back}`;
  const cools =
    cooling === 0
      ? ""
      : `, ${cooling} cool, the first for ${shortDuration(Math.ceil(coolsForMs / 1000) * 1000)}`;
  const some = isNamed ? ` ${listed(blocks, NAMED)},` : "";
  return `the ${family} blocks that this node has of ${about},${some} have no free address: ${used} in use${cools}${back}`;
}

const ON_ONE_HOST =
  "the pool is full: no other block of it is free; berthctl get attachments -A and berthctl get claims -A say who has what: end pods, release claims, or add a range";

/** Who has how many, and what comes next. */
function nextOf(owners: readonly PoolOwner[], { family }: BlockShortage, isNamed: boolean): string {
  const own = owners.filter((one) => one.family === family);
  const some = own.slice(0, NAMED);
  const isCut = own.length > NAMED;
  const which = isNamed
    ? `${some.map(({ node, blocks }) => `${node} ${blocks}`).join(", ")}${isCut ? " and others" : ""}`
    : `${countsOf(some)} of the pool's blocks${isCut ? ", others some too" : ""} (kubectl get ipblocks says which)`;
  const who = own.length === 0 ? "kubectl get ipblocks says who has them" : `nodes have ${which}`;
  return `a controller gives it a block as soon as one is free; ${who}`;
}

/** `4, 3 and 1` */
function countsOf(owners: readonly PoolOwner[]): string {
  const counts = owners.map(({ blocks }) => String(blocks));
  const last = counts.pop() ?? "";
  return counts.length === 0 ? last : `${counts.join(", ")} and ${last}`;
}
