// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Block } from "../../allocator/model/block.ts";
import { excludesTooMuch } from "../../allocator/pool/excluded-total.ts";
import { type Pool, type PoolRecord, parsePool, parseStoredPool } from "../../allocator/pool/pool.ts";
import { settledSize } from "../../allocator/pool/settled-size.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";
import { ALL_POOLS } from "./disclosure.ts";
import { warningOfSize } from "./mutate-pool.ts";
import { changedBlockSize, changedNodeCidrs } from "./pool-blocks.ts";
import { warningsOfHolders } from "./pool-holders.ts";
import { warningsOfOccupants } from "./pool-occupants.ts";
import {
  asksForRoom,
  collision,
  judgeRemoval,
  judgeRoom,
  poolRecordOf,
  type SpecBefore,
} from "./pool-rules.ts";
import { newWarnings } from "./pool-warnings.ts";
import { PoolsUnderWay } from "./pools-under-way.ts";
import { beforeOf, unknownIn } from "./unknown-keys.ts";

/** `/validate/pools`: a pool that passes is one that the allocator can use, and takes nothing from anybody. */
export function validatePools(admission: AdmissionContext): Handler {
  const underWay = new PoolsUnderWay(admission.context.clock);
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    // Two pools that overlap each other must not be judged at the same moment, by this process at least.
    return await admission.context.serial.run("pools", () => decide(admission, underWay, request));
  };
}

async function decide(
  admission: AdmissionContext,
  underWay: PoolsUnderWay,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  const written = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
  if (isRefusal(written)) return denied(request.uid, written);
  const { object, warnings } = await settled(admission, request, written);
  const refusal = expectKind(object, ["IPPool"]) ?? (await judge(admission, underWay, request, object));
  if (refusal !== undefined) return denied(request.uid, refusal);
  warnings.push(...(await warningsOf(admission, request, object)));
  if (admission.embedded !== undefined && !request.dryRun) await store(admission, request, object);
  return allowed(request.uid, warnings);
}

/** On the embedded stack this review is the only one: in a cluster the API server sends what `/mutate/pools` made of it. */
async function settled(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<{ readonly object: KubeObject; readonly warnings: string[] }> {
  if (admission.embedded === undefined || request.operation === "DELETE") return { object, warnings: [] };
  const before = await beforeSpec(admission, request, object);
  const blockSize = settledSize(object.spec.value, before);
  if (blockSize === undefined) return { object, warnings: [] };
  const spec = new Fields({ ...object.spec.value, blockSize });
  return {
    object: { ...object, spec },
    warnings: before === undefined ? [warningOfSize(object.metadata.name, spec.value, blockSize)] : [],
  };
}

/** On the embedded stack what is stored is what stood; in a cluster the API server says it. */
async function beforeSpec(
  { embedded, context }: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<SpecBefore | undefined> {
  const said = beforeOf(request)?.spec.value;
  if (said !== undefined || embedded === undefined) return said;
  const stored = (await context.store.get("pool", object.metadata.name))?.record.spec;
  return stored && { ...stored };
}

async function warningsOf(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<string[]> {
  if (request.operation === "DELETE" || isSameSpec(request, object)) return [];
  const pools = await poolsNow(admission);
  const stored = await beforeSpec(admission, request, object);
  const now = poolRecordOf(object);
  const before = stored && { ...now, spec: stored as unknown as PoolRecord["spec"] };
  const change = { pools, now, before, namesOthers: await mayNameOthers(admission, request, object) };
  const said = newWarnings(admission.context.view, change, admission.nodeUse);
  const occupants = await warningsOfOccupants(admission, now, request.userInfo);
  const holders = await warningsOfHolders(admission, change, request.userInfo);
  return [...said, ...holders, ...occupants];
}

/** Of other defaults alone anything is said. */
async function mayNameOthers(
  { readAccess }: AdmissionContext,
  { userInfo }: AdmissionRequest,
  object: KubeObject,
): Promise<boolean> {
  if (readAccess === undefined || object.spec.get("default") !== true) return true;
  return await readAccess.mayRead(userInfo, ALL_POOLS);
}

async function judge(
  admission: AdmissionContext,
  underWay: PoolsUnderWay,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<Refusal | undefined> {
  if (request.operation === "DELETE") return judgeRemoval(admission.context.view, object);
  const unknown = unknownIn(request, object, "IPPool");
  if (unknown !== undefined) return unknown;
  if (isSameSpec(request, object)) return undefined;
  const before = await beforeSpec(admission, request, object);
  const pool =
    excludesTooMuch(object.spec.value, before) ??
    judgeBlockSize(object, before) ??
    parsePool(poolRecordOf(object));
  if (isRefusal(pool)) return pool;
  if (!asksForRoom(pool, before)) return undefined;
  // such reviews are rare, so that the authority is asked; what pools there are as late as can be
  const blocks = await blocksNow(admission);
  const pools = await underWay.stored(
    pool,
    () => poolsNow(admission),
    (others) => collision(others, pool, before),
  );
  const refusal = judgeRoom({ view: admission.context.view, pools, blocks }, pool, before);
  if (refusal === undefined && admission.embedded === undefined && !request.dryRun) underWay.passed(pool);
  return refusal;
}

/** Its labels and finalizers may change whatever stands beside it by now. */
function isSameSpec(request: AdmissionRequest, object: KubeObject): boolean {
  if (request.operation !== "UPDATE") return false;
  const before = objectOf(request, "oldObject");
  return !isRefusal(before) && isDeepStrictEqual(before.spec.value, object.spec.value);
}

function judgeBlockSize(object: KubeObject, before: SpecBefore | undefined): Refusal | undefined {
  if (before === undefined) return undefined;
  return (
    changedBlockSize(object.spec.get("blockSize"), before["blockSize"]) ??
    changedNodeCidrs(object.spec.get("nodeCIDRs"), before["nodeCIDRs"])
  );
}

/**
 * The pool that was stored a moment ago counts, whether or not the view shows it yet. Two that two replicas judge at the
 * same moment pass all the same, in a cluster: the pools controller says so, and no address is given twice (ADR 0038).
 */
async function poolsNow(admission: AdmissionContext): Promise<readonly Pool[]> {
  const pools: Pool[] = [];
  for await (const { record } of admission.context.store.list("pool")) {
    const pool = parseStoredPool(record);
    if (!isRefusal(pool)) pools.push(pool);
  }
  return pools;
}

/** What nodes have: the view may not show yet what a pass that is under way has granted. */
async function blocksNow({ context: { store } }: AdmissionContext): Promise<readonly Block[]> {
  const blocks: Block[] = [];
  for await (const { record } of store.list("block"))
    if (record.releasedAt === undefined) blocks.push(record);
  return blocks;
}

/** On the embedded stack the review is the write. */
async function store(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<void> {
  const { store } = admission.context;
  const next = poolRecordOf(object);
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
