// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { sizeOf } from "../../../allocator/ip/ip-range.ts";
import { Fields } from "../../../allocator/manifest/kubernetes-object.ts";
import { claimKey, isBound } from "../../../allocator/model/claim.ts";
import type { Reservation } from "../../../allocator/model/reservation.ts";
import { capacity, familiesOf, intervalsOf, type Pool } from "../../../allocator/pool/pool.ts";
import type { KubeItem } from "../../../kube/api/resource.ts";
import {
  type Condition,
  type ConditionInput,
  conditionsOf,
  generationOf,
  mergeConditions,
  reasonOf,
} from "../conditions.ts";
import type { ReviewersBy } from "../controller.ts";

/** What a pool's addresses are used for. */
export interface PoolUsage {
  readonly reserved: number;
  readonly cooling: number;
  /** Reserved for a claim that is bound to a pod on a node. */
  readonly bound: number;
  /** Some that are reserved and whose they are, for messages: address (claim). */
  readonly some: readonly string[];
}

export const UNUSED: PoolUsage = { reserved: 0, cooling: 0, bound: 0, some: [] };

/** Holders that a message names. */
const NAMED = 3;
/** Records counted in one go, in less than 1 ms. */
const SLICE = 1_000;

type Counts = Map<string, { reserved: number; cooling: number; bound: number; some: string[] }>; // pool -> use

/** By pool, what its addresses are used for; `rest` lets others have their turn between slices. */
export async function countPoolUsage(
  cache: RecordCache,
  rest: () => Promise<void>,
): Promise<ReadonlyMap<string, PoolUsage>> {
  const census: Counts = new Map();
  for (const [n, { record }] of [...cache.reservations()].entries()) {
    if (n % SLICE === SLICE - 1) await rest();
    count(census, record);
  }
  for (const [n, { record }] of [...cache.claims()].entries()) {
    if (n % SLICE === SLICE - 1) await rest();
    if (!isBound(record)) continue;
    for (const address of record.addresses) {
      const use = census.get(poolHolding(cache, address, record.nonce) ?? "");
      if (use !== undefined) use.bound++;
    }
  }
  return census;
}

function count(census: Counts, { address, pool, claim, releasedAt }: Reservation): void {
  const use = census.get(pool) ?? { ...UNUSED, some: [] };
  census.set(pool, use);
  if (releasedAt !== undefined) {
    use.cooling++;
    return;
  }
  use.reserved++;
  if (use.some.length < NAMED) use.some.push(`${address} (${claimKey(claim)})`);
}

function poolHolding(cache: RecordCache, address: Address, nonce: string): string | undefined {
  const reservation = cache.reservation(address)?.record;
  return reservation?.nonce === nonce && reservation.releasedAt === undefined ? reservation.pool : undefined;
}

/** Null takes a field away: an invalid pool has no capacity. Numbers of addresses are text: a /64 has more than JSON counts. */
export interface PoolReport {
  readonly capacity: string | null;
  readonly reserved: number;
  readonly bound: number;
  readonly free: string | null;
  readonly conditions: readonly Condition[];
}

/** What is known of the pool at this moment. */
export interface PoolState {
  readonly pool: Pool | Refusal;
  readonly deleting: boolean;
  readonly use: PoolUsage;
  /** Families of which nothing is free that anybody could get. */
  readonly exhausted: readonly string[];
  /** Another pool has some of its addresses: both were admitted at the same moment, or past the webhook. */
  readonly collides?: Refusal | undefined;
  /** What keeps strangers from sending reviews; absent: nothing is said about it. */
  readonly reviewersBy?: ReviewersBy | undefined;
}

/** The status that the pool should have, or undefined when it has it. */
export function reportOn(item: KubeItem, state: PoolState, now: number): PoolReport | undefined {
  const status = new Fields(item).at("status");
  const before: PoolReport = {
    capacity: textOrNull(status.get("capacity")),
    reserved: status.count("reserved", -1),
    bound: status.count("bound", -1),
    free: textOrNull(status.get("free")),
    conditions: conditionsOf(item),
  };
  const at = { generation: generationOf(item), now };
  const next: PoolReport = {
    ...numbersOf(state),
    conditions: mergeConditions(before.conditions, conditionsFor(state), at),
  };
  return isDeepStrictEqual(next, before) ? undefined : next;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function numbersOf({ pool, use }: PoolState): Omit<PoolReport, "conditions"> {
  const { reserved, cooling, bound } = use;
  if (isRefusal(pool)) return { capacity: null, reserved, bound, free: null };
  const all = familiesOf(pool).reduce((sum, family) => sum + capacity(pool, family), 0n);
  const free = all - BigInt(reserved + cooling);
  return { capacity: String(all), reserved, bound, free: String(free < 0n ? 0n : free) };
}

/** Of which families nothing is left but what may be had by explicit request. */
export function exhaustedOf(cache: RecordCache, pool: Pool): readonly string[] {
  return familiesOf(pool).filter((family) => {
    const all = intervalsOf(pool, family).reduce((sum, interval) => sum + sizeOf(interval), 0n);
    return cache.unpickable(pool, family).size >= all;
  });
}

function conditionsFor(state: PoolState): readonly ConditionInput[] {
  const { reviewersBy } = state;
  const open = reviewersBy === undefined ? [] : [openness(reviewersBy)];
  return [readiness(state), exhaustion(state), validity(state), ...open];
}

/** Of all pools alike: pools are what those who run the network look at. */
function openness(by: ReviewersBy): ConditionInput {
  const type = "ReviewsOpen";
  if (by === "ClientCertificate") {
    const message = "only an API server with a trusted client certificate may send reviews";
    return { type, status: "False", reason: by, message };
  }
  if (by === "NetworkPolicy") {
    const message = "a NetworkPolicy says who may send reviews, if the network plugin enforces it";
    return { type, status: "Unknown", reason: by, message };
  }
  const message =
    "anybody who reaches the webhook's port may send reviews, and hold addresses for a while by them; docs/hardening.md says how to let nobody but the API server do so";
  return { type, status: "True", reason: "AnyClient", message };
}

function readiness({ pool, deleting, use, collides }: PoolState): ConditionInput {
  const no = (reason: string, message: string): ConditionInput => ({
    type: "Ready",
    status: "False",
    reason,
    message,
  });
  if (deleting) {
    const more = use.reserved > use.some.length ? ` and ${use.reserved - use.some.length} more` : "";
    const words = `it was deleted and goes when what it still holds is released: ${use.some.join(", ")}${more}`;
    return no("Deleting", use.reserved === 0 ? "it was deleted and is about to go" : words);
  }
  if (isRefusal(pool)) return no(reasonOf(pool.code), pool.message);
  if (collides !== undefined) return no(reasonOf(collides.code), collides.message);
  if (pool.disabled) return no("PoolDisabled", "takes no new reservations: spec.disabled is true");
  return { type: "Ready", status: "True", reason: "Open", message: "takes reservations" };
}

function exhaustion({ pool, exhausted }: PoolState): ConditionInput {
  if (isRefusal(pool)) {
    return {
      type: "Exhausted",
      status: "Unknown",
      reason: reasonOf(pool.code),
      message: "its ranges cannot be read",
    };
  }
  if (exhausted.length === 0) {
    return { type: "Exhausted", status: "False", reason: "AddressesFree", message: "addresses are free" };
  }
  const message = `every ${exhausted.join(" and ")} address that may be had without naming it is taken; add a range or release claims`;
  return { type: "Exhausted", status: "True", reason: "PoolExhausted", message };
}

function validity({ pool }: PoolState): ConditionInput {
  return isRefusal(pool)
    ? { type: "Invalid", status: "True", reason: reasonOf(pool.code), message: pool.message }
    : { type: "Invalid", status: "False", reason: "Valid", message: "its spec can be used" };
}
