// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { PoolUsage } from "../../../allocator/cache/pool-usage.ts";
import { Fields } from "../../../allocator/manifest/kubernetes-object.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { type FamilyFigures, figuresOf } from "../../../allocator/pool/pool-figures.ts";
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
import type { Owner } from "./owners.ts";

/** Null takes a field away: an invalid pool has no figures, and sums of both families were written by older versions. */
export interface PoolReport {
  readonly reserved: number;
  readonly bound: number;
  /** Of a pool that is cut into blocks: how many nodes have, or cool. */
  readonly blocks?: number;
  /** And which nodes have most. */
  readonly owners?: readonly Owner[];
  /** Addresses of both families in blocks, and how many of them sandboxes have, as agents said last. */
  readonly inBlocks?: number;
  readonly used?: number;
  readonly ipv4: FamilyFigures | null;
  readonly ipv6: FamilyFigures | null;
  readonly capacity: null;
  readonly free: null;
  readonly conditions: readonly Condition[];
}

/** What is known of the pool at this moment. */
export interface PoolState {
  readonly pool: Pool | Refusal;
  readonly deleting: boolean;
  readonly use: PoolUsage;
  /** How many blocks of it there are; absent: it is not cut into any. */
  readonly blocks?: number;
  readonly owners?: readonly Owner[];
  /** Addresses of its blocks that sandboxes have; absent: it is not cut into blocks for pods. */
  readonly used?: number;
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
  const before = {
    reserved: status.count("reserved", -1),
    bound: status.count("bound", -1),
    ...(status.get("blocks") === undefined ? {} : { blocks: status.count("blocks", -1) }),
    ...(status.get("owners") === undefined ? {} : { owners: status.list("owners") }),
    ...(status.get("inBlocks") === undefined ? {} : { inBlocks: status.count("inBlocks", -1) }),
    ...(status.get("used") === undefined ? {} : { used: status.count("used", -1) }),
    ipv4: status.get("ipv4") ?? null,
    ipv6: status.get("ipv6") ?? null,
    capacity: status.get("capacity") ?? null,
    free: status.get("free") ?? null,
    conditions: conditionsOf(item),
  };
  const at = { generation: generationOf(item), now };
  const next: PoolReport = {
    ...numbersOf(state),
    conditions: mergeConditions(before.conditions, conditionsFor(state), at),
  };
  return isDeepStrictEqual(next, before) ? undefined : next;
}

function numbersOf({
  pool,
  blocks,
  owners,
  used,
  use: { byFamily, reserved },
}: PoolState): Omit<PoolReport, "conditions"> {
  const bound = byFamily.IPv4.bound + byFamily.IPv6.bound;
  const { ipv4 = null, ipv6 = null } = isRefusal(pool) ? {} : figuresOf(pool, byFamily);
  const cut = { ...(blocks === undefined ? {} : { blocks }), ...(owners === undefined ? {} : { owners }) };
  const inBlocks = (byFamily.IPv4.inBlocks ?? 0) + (byFamily.IPv6.inBlocks ?? 0);
  const own = used === undefined ? {} : { inBlocks, used };
  return { reserved, bound, ...cut, ...own, ipv4, ipv6, capacity: null, free: null };
}

function conditionsFor(state: PoolState): readonly ConditionInput[] {
  const { reviewersBy } = state;
  const open = reviewersBy === undefined ? [] : [reviewsOpen(reviewersBy)];
  return [readiness(state), exhaustion(state), validity(state), ...open];
}

/** Of all pools alike: pools are what those who run the network look at. */
function reviewsOpen(by: ReviewersBy): ConditionInput {
  const type = "ReviewsOpen";
  if (by === "ClientCertificate") {
    const message = "only an API server with a trusted client certificate may send reviews";
    return { type, status: "False", reason: by, message };
  }
  if (by === "NetworkPolicy") {
    const message = "a NetworkPolicy says who may send reviews, if the network plugin enforces it";
    return { type, status: "Unknown", reason: by, message };
  }
  if (by === "ClosedElsewhere") {
    const message =
      "networkPolicy.closedElsewhere says that a firewall or a policy of the administrator's lets in nobody but the API server; Berth cannot see whether it does";
    return { type, status: "Unknown", reason: by, message };
  }
  const message =
    "anybody who reaches the webhook's port may send reviews, and hold addresses for a while by them; docs/hardening.md says how to let nobody but the API server do so";
  return { type, status: "True", reason: "AnyClient", message };
}

/** Ranges cannot change while nodes have blocks, or claims addresses, outside of what they would be. */
const WAY_OUT =
  ", or set spec.disabled: true on one, which may always be changed, and delete it once nothing of it is in use";

function readiness({ pool, deleting, use, collides, exhausted }: PoolState): ConditionInput {
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
  if (collides !== undefined) return no(reasonOf(collides.code), `${collides.message}${WAY_OUT}`);
  if (pool.disabled) return no("PoolDisabled", "takes no new reservations: spec.disabled is true");
  if (exhausted.length > 0) {
    const message = `has no ${exhausted.join(" and ")} address left for requests that name none`;
    return { type: "Ready", status: "True", reason: "Full", message };
  }
  return { type: "Ready", status: "True", reason: "Open", message: "takes reservations" };
}

function exhaustion({ pool, exhausted, use }: PoolState): ConditionInput {
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
  const { IPv4, IPv6 } = use.byFamily;
  const inBlocks = (IPv4.inBlocks ?? 0) + (IPv6.inBlocks ?? 0);
  const some =
    inBlocks === 0
      ? ""
      : `, ${inBlocks} by blocks of nodes, which give what they do not use to pods that ask for nothing`;
  const release = use.reserved === 0 && inBlocks > 0 ? "end pods" : "release claims";
  const message = `every ${exhausted.join(" and ")} address that may be had without naming it is taken${some}; add a range or ${release}`;
  return { type: "Exhausted", status: "True", reason: "PoolExhausted", message };
}

function validity({ pool }: PoolState): ConditionInput {
  return isRefusal(pool)
    ? { type: "Invalid", status: "True", reason: reasonOf(pool.code), message: pool.message }
    : { type: "Invalid", status: "False", reason: "Valid", message: "its spec can be used" };
}
