// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { holderOf, type RecordReader } from "../../allocator/cache/reader.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { findOverlap } from "../../allocator/pool/overlap.ts";
import {
  classify,
  type Pool,
  type PoolRecord,
  parsePool,
  parseStoredPool,
} from "../../allocator/pool/pool.ts";
import { withSettledSize } from "../../allocator/pool/settled-size.ts";
import { givesSpecialAddresses } from "../../allocator/pool/special-addresses.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";
import { SINGLES_TOLD } from "./mutate-pool.ts";
import { beforeOf, unknownIn } from "./own-keys.ts";
import { changedBlockSize, excludesOwnedBlocks, heldByNodes, withoutBlocks } from "./pool-blocks.ts";
import { toldOfOccupants } from "./pool-occupants.ts";

/** `/validate/pools`: a pool that passes is one that the allocator can use, and takes nothing from anybody. */
export function validatePools(admission: AdmissionContext): Handler {
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    // Two pools that overlap each other must not be judged at the same moment, by this process at least.
    return await admission.context.serial.run("pools", () => decide(admission, request));
  };
}

async function decide(admission: AdmissionContext, request: AdmissionRequest): Promise<AdmissionResponse> {
  const written = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
  if (isRefusal(written)) return denied(request.uid, written);
  const { object, told } = await settled(admission, request, written);
  const refusal = expectKind(object, ["IPPool"]) ?? (await judge(admission, request, object));
  if (refusal !== undefined) return denied(request.uid, refusal);
  told.push(...(await toldOf(admission, request, object)));
  if (admission.embedded !== undefined && !request.dryRun) await store(admission, request, object);
  return allowed(request.uid, told);
}

/** On the embedded stack this review is the only one: in a cluster the API server sends what `/mutate/pools` made of it. */
async function settled(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<{ readonly object: KubeObject; readonly told: string[] }> {
  if (admission.embedded === undefined || request.operation === "DELETE") return { object, told: [] };
  const before = beforeSpec(request, object, await poolsNow(admission));
  const spec = withSettledSize(object.spec.value, before);
  if (spec === object.spec.value) return { object, told: [] };
  return { object: { ...object, spec: new Fields(spec) }, told: before === undefined ? [SINGLES_TOLD] : [] };
}

/** On the embedded stack what is stored is what stood; in a cluster the API server says it. */
function beforeSpec(
  request: AdmissionRequest,
  object: KubeObject,
  pools: readonly Pool[],
): Readonly<Record<string, unknown>> | undefined {
  const stored = pools.find(({ name }) => name === object.metadata.name)?.spec;
  return beforeOf(request)?.spec.value ?? (stored && { ...stored });
}

async function toldOf(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<string[]> {
  if (request.operation === "DELETE" || isSameSpec(request, object)) return [];
  const occupants = await toldOfOccupants(admission, recordOf(object), request.userInfo);
  return [...(await toldOfDefault(admission, object)), ...occupants];
}

/** What `default` does not do, though somebody may think so. */
async function toldOfDefault(admission: AdmissionContext, object: KubeObject): Promise<string[]> {
  if (!object.spec.flag("default")) return [];
  if (object.spec.get("blockSize") === undefined) {
    return [
      "spec.default serves pods that ask for nothing only from a pool that was made with it, or with spec.blockSize, and this one was not; make another pool for them",
    ];
  }
  const { name } = object.metadata;
  const others = (await poolsNow(admission)).filter(
    ({ name: other, spec }) =>
      other !== name && spec.default === true && spec.blockSize !== undefined && spec.disabled !== true,
  );
  if (others.length === 0) return [];
  const named = others.slice(0, 3).map((pool) => pool.name);
  return [
    `pool ${named.join(", ")} is a default too: of several that are open to a pod the one of the highest spec.priority serves it, then the first by name; set default on one alone`,
  ];
}

async function judge(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<Refusal | undefined> {
  if (request.operation === "DELETE") return judgeRemoval(admission, object);
  const unknown = unknownIn(request, object, "IPPool");
  if (unknown !== undefined) return unknown;
  if (isSameSpec(request, object)) return undefined;
  const pools = await poolsNow(admission);
  return judgeBlockSize(request, object, pools) ?? judgePool(admission.context.view, pools, object);
}

/** Its labels and finalizers may change whatever stands beside it by now. */
function isSameSpec(request: AdmissionRequest, object: KubeObject): boolean {
  if (request.operation !== "UPDATE") return false;
  const before = objectOf(request, "oldObject");
  return !isRefusal(before) && isDeepStrictEqual(before.spec.value, object.spec.value);
}

function judgeBlockSize(
  request: AdmissionRequest,
  object: KubeObject,
  pools: readonly Pool[],
): Refusal | undefined {
  const before = beforeSpec(request, object, pools);
  return before && changedBlockSize(object.spec.get("blockSize"), before["blockSize"]);
}

function recordOf(object: KubeObject): PoolRecord {
  // `parsePool` has read every field of it.
  return { name: object.metadata.name, spec: object.spec.value as unknown as PoolRecord["spec"] };
}

/**
 * The pool that was stored a moment ago counts, whether or not the view shows it yet. Two that two replicas judge at the
 * same moment pass all the same, in a cluster: the pools controller says so, and an address has one reservation anyway.
 */
async function poolsNow(admission: AdmissionContext): Promise<readonly Pool[]> {
  const pools: Pool[] = [];
  for await (const { record } of admission.context.store.list("pool")) {
    const pool = parseStoredPool(record);
    if (!isRefusal(pool)) pools.push(pool);
  }
  return pools;
}

/** Why the pool cannot stand beside the others and what is reserved in it. */
export function judgePool(
  view: RecordReader,
  pools: readonly Pool[],
  object: KubeObject,
): Refusal | undefined {
  const pool = parsePool(recordOf(object));
  if (isRefusal(pool)) return pool;
  return (
    newSpecialAddresses(pools, pool) ??
    findOverlap(pools, pool) ??
    withoutBlocks(pool) ??
    excludesReservations(view, pool) ??
    excludesOwnedBlocks(view, pool)
  );
}

/** A pool that has them from before may keep them, so that it can still be disabled. */
function newSpecialAddresses(pools: readonly Pool[], pool: Pool): Refusal | undefined {
  const stored = pools.find(({ name }) => name === pool.name);
  if (stored !== undefined && givesSpecialAddresses(stored) !== undefined) return undefined;
  return givesSpecialAddresses(pool);
}

/** No reservation that a claim relies on may find itself outside, or on an address that is not given out. */
function excludesReservations(view: RecordReader, pool: Pool): Refusal | undefined {
  const lost: Reservation[] = [];
  for (const { record } of view.reservations()) {
    if (record.pool !== pool.name || record.releasedAt !== undefined) continue;
    const kind = classify(pool, record.address);
    if (kind !== "open" && kind !== "reserved") lost.push(record);
  }
  return lost.length === 0
    ? undefined
    : inUse(view, pool.name, { reservations: lost, why: "the change would leave out" });
}

function judgeRemoval(admission: AdmissionContext, object: KubeObject): Refusal | undefined {
  const { name } = object.metadata;
  const held: Reservation[] = [];
  for (const { record } of admission.context.view.reservations()) {
    if (record.pool === name && record.releasedAt === undefined) held.push(record);
  }
  if (held.length > 0)
    return inUse(admission.context.view, name, { reservations: held, why: "it still holds" });
  return heldByNodes(admission.context.view, name);
}

function inUse(
  view: RecordReader,
  pool: string,
  { reservations, why }: { readonly reservations: readonly Reservation[]; readonly why: string },
): Refusal {
  const some = reservations.slice(0, 5).map((one) => `${one.address} (${holder(view, one)})`);
  const more = reservations.length > 5 ? ` and ${reservations.length - 5} more` : "";
  return refuse(
    "POOL_IN_USE",
    `pool ${pool} is in use: ${why} ${some.join(", ")}${more}; release them first, or set disabled: true and wait`,
    {
      pool,
    },
  );
}

/** Whose it is, and until when, where that is known: the others stay as long as their owners. */
function holder(view: RecordReader, reservation: Reservation): string {
  const { key, claim } = holderOf(view, reservation);
  if (claim?.retained === undefined) return key;
  const pools = claim.addresses.flatMap((one) => view.poolOf(one) ?? []);
  const ttlMs = allowedTtlMs(claim.retention, pools);
  if (ttlMs === null) return `${key}, kept until it is released`;
  return `${key}, kept until ${new Date(claim.retained.since + ttlMs).toISOString().replace(/\.\d{3}Z$/, "Z")}`;
}

/** On the embedded stack the review is the write. */
async function store(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<void> {
  const { store } = admission.context;
  const next = recordOf(object);
  await retryOnConflict(store, { kind: "pool", key: next.name, doing: "it was stored" }, async (seen) => {
    if (request.operation === "DELETE" && seen === undefined) return undefined;
    const { kind } = await (request.operation === "DELETE" && seen !== undefined
      ? store.remove("pool", seen)
      : seen === undefined
        ? store.create("pool", next)
        : store.replace("pool", seen, next));
    return kind === "conflict" || kind === "exists" ? "conflict" : undefined;
  });
}
