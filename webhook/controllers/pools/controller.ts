// SPDX-License-Identifier: Apache-2.0

import { isRefusal, messageOf } from "../../../allocator/base/errors.ts";
import { countPoolUsage, type PoolUsage, ranOutOf, UNUSED } from "../../../allocator/cache/pool-usage.ts";
import { Fields } from "../../../allocator/manifest/kubernetes-object.ts";
import { isBound } from "../../../allocator/model/claim.ts";
import { findOverlap } from "../../../allocator/pool/overlap.ts";
import { type Pool, parseStoredPool } from "../../../allocator/pool/pool.ts";
import { IN_USE } from "../../../allocator/store/kubernetes/objects.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { Client } from "../../../kube/api/client.ts";
import { apiVersionOf, BLOCKS, type KubeItem, POOLS, RESERVATIONS } from "../../../kube/api/resource.ts";
import { type Controller, runQueue } from "../../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../../kube/controller/workqueue.ts";
import { type Condition, conditionsOf, withoutManagedFields } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import { ownersOf } from "./owners.ts";
import { type PoolReport, type PoolState, reportOn } from "./status.ts";

/** A pool is written so often at most. */
const EVERY_MS = 2_000;
/** After a pass, however much has changed by then, and 20 times as long as the pass counted: 5 % of a processor. */
const REST_MS = 100;
const REST_FACTOR = 20;
/** And no longer: a process that stood still while it counted took long, and finalizers and statuses wait for it. */
const MOST_REST_MS = 30_000;
/** Until then the first full pass of the watches is over, or nearly. */
const UNREADY_MS = 200;
const ALL = "pools";

/** Keeps status, conditions and finalizer of the pools as the records say. */
export function startPools(deps: ControllerDeps): Controller {
  return new Pools(deps).start();
}

class Pools {
  readonly #deps: ControllerDeps;
  readonly #client: Client;
  readonly #reservations: Client;
  readonly #blocks: Client;
  readonly #queue: WorkQueue;
  readonly #items = new Map<string, KubeItem>(); // pool -> the object as it was last seen
  readonly #writtenAt = new Map<string, number>(); // pool -> monotonic time of the last write
  /** Monotonic: the next pass begins no sooner. */
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#client = new Client(deps.connection, POOLS);
    this.#reservations = new Client(deps.connection, RESERVATIONS);
    this.#blocks = new Client(deps.connection, BLOCKS);
    const { clock, random, log } = deps.context;
    const { metrics } = deps;
    const work = (_: string, signal: AbortSignal) => this.#pass(signal);
    this.#queue = new WorkQueue({ name: "pools", work, clock, random, log, metrics });
  }

  start(): Controller {
    const { leadership, cache } = this.#deps;
    const undo = [
      leadership.onGain(() => this.#soon()),
      cache.onChange("pool", (name, now) => {
        if (now === undefined || this.#items.get(name)?.metadata.resourceVersion !== now.revision)
          this.#soon();
      }),
      cache.onChange("reservation", () => this.#soon()),
      cache.onChange("block", () => this.#soon()),
      cache.onChange("claim", (_, now, before) => {
        if (boundTo(now) !== boundTo(before)) this.#soon();
      }),
    ];
    this.#soon();
    return runQueue(this.#queue, undo);
  }

  /** Whatever happens until then is covered by one pass over all pools. */
  #soon(): void {
    if (!this.#deps.leadership.leads()) return;
    const { clock } = this.#deps.context;
    this.#queue.addAfter(ALL, Math.max(0, this.#restsUntil - clock.monotonic()));
  }

  async #pass(signal: AbortSignal): Promise<Outcome> {
    const { leadership, cache, context } = this.#deps;
    if (!leadership.leads()) {
      this.#items.clear();
      return DONE;
    }
    if (!cache.ready) return { kind: "again", afterMs: UNREADY_MS };
    const began = context.clock.monotonic();
    // what changed while it was counted asked for this pass before it was known how long that one rests
    if (began < this.#restsUntil) return { kind: "again", afterMs: this.#restsUntil - began };
    const usage = await countPoolUsage(cache, () => context.clock.sleep(0));
    const ended = context.clock.monotonic();
    this.#restsUntil = ended + Math.min(MOST_REST_MS, REST_MS + REST_FACTOR * (ended - began));
    this.#forgetGone();
    const waits: number[] = [];
    for (const stored of [...cache.poolRecords()]) {
      if (signal.aborted || !leadership.leads()) return DONE;
      waits.push(await this.#settleSafely(stored, usage.get(stored.key) ?? UNUSED));
    }
    const afterMs = Math.min(...waits.filter((ms) => ms > 0));
    return Number.isFinite(afterMs) ? { kind: "again", afterMs } : DONE;
  }

  #forgetGone(): void {
    for (const kept of [this.#items, this.#writtenAt]) {
      for (const name of kept.keys()) if (this.#deps.cache.poolRecord(name) === undefined) kept.delete(name);
    }
  }

  /** One pool that cannot be written must not keep the others from their turn. */
  async #settleSafely(stored: Stored<"pool">, use: PoolUsage): Promise<number> {
    try {
      return await this.#settle(stored, use);
    } catch (error) {
      const fields = { pool: stored.key, error: messageOf(error) };
      this.#deps.context.log.warn("state of a pool cannot be written; it is tried again", fields);
      return EVERY_MS;
    }
  }

  /** One write at most. Gives 0 when everything is as it should be, or the ms until the next look. */
  async #settle(stored: Stored<"pool">, use: PoolUsage): Promise<number> {
    const { context } = this.#deps;
    const wait = (this.#writtenAt.get(stored.key) ?? Number.NEGATIVE_INFINITY) + EVERY_MS;
    const item = await this.#item(stored);
    if (item === undefined) return 0; // it went, and the cache hears of it
    const finalizers = await this.#finalizersFor(item, use);
    const report = reportOn(item, this.#stateOf(stored, use), context.clock.now());
    if (finalizers === undefined && report === undefined) return 0;
    const ms = wait - context.clock.monotonic();
    if (ms > 0) return ms;
    this.#writtenAt.set(stored.key, context.clock.monotonic());
    if (finalizers !== undefined) await this.#writeFinalizers(item, finalizers);
    else if (report !== undefined) await this.#writeReport(item, report);
    return EVERY_MS;
  }

  /** The object as the cache has it, or as it is now when that is newer. */
  async #item({ key, revision }: Stored<"pool">): Promise<KubeItem | undefined> {
    const known = this.#items.get(key);
    if (known?.metadata.resourceVersion === revision) return known;
    const item = await this.#client.get({ name: key });
    this.#remember(item);
    return item;
  }

  #remember(item: KubeItem | undefined): void {
    if (item !== undefined) this.#items.set(item.metadata.name, withoutManagedFields(item));
  }

  /** The finalizers as they should be; undefined if they are. A deleted pool stays until it holds nothing, which a live list decides, not the cache. */
  async #finalizersFor(
    { metadata }: KubeItem,
    { reserved }: PoolUsage,
  ): Promise<readonly string[] | undefined> {
    const { finalizers = [], name, deletionTimestamp } = metadata;
    const there = finalizers.includes(IN_USE);
    if (reserved > 0 || this.#isForBlocks(name))
      return there || deletionTimestamp !== undefined ? undefined : [...finalizers, IN_USE];
    if (!there || (await this.#holdsAny(name))) return undefined;
    return finalizers.filter((finalizer) => finalizer !== IN_USE);
  }

  /** It has blocks, or nodes may get some at any moment: then it is kept beforehand. */
  #isForBlocks(name: string): boolean {
    const { cache } = this.#deps;
    const pool = cache.pool(name);
    const mayHave = pool !== undefined && !pool.deleting && isCut(pool);
    return mayHave || !isEmpty(cache.blocksOf(name));
  }

  /** A reservation that cools holds nothing. A block that cools does: whoever ends that asks the pool how long it takes. */
  async #holdsAny(pool: string): Promise<boolean> {
    const selection = { fieldSelector: `spec.pool=${pool}` };
    for await (const { items } of this.#blocks.pages(selection, 1)) if (items.length > 0) return true;
    for await (const { items } of this.#reservations.pages(selection, 500)) {
      if (items.some((item) => !isCooling(item))) return true;
    }
    return false;
  }

  #stateOf({ record }: Stored<"pool">, use: PoolUsage): PoolState {
    const pool = parseStoredPool(record);
    const { cache } = this.#deps;
    const deleting = record.deleting === true;
    const { reviewersBy } = this.#deps;
    if (isRefusal(pool)) return { pool, deleting, use, exhausted: [], reviewersBy };
    const exhausted = ranOutOf(cache, pool);
    const { owners, used } = ownersOf(cache, pool.name);
    const blocks = [...cache.blocksOf(pool.name)].length;
    const ofPods = pool.spec.nodeCIDRs === undefined ? { used } : {};
    const cut = isCut(pool) ? { blocks, owners, ...ofPods } : {};
    const collides = findOverlap(cache.pools(), pool);
    return { pool, deleting, use, ...cut, exhausted, collides, reviewersBy };
  }

  async #writeFinalizers({ metadata }: KubeItem, finalizers: readonly string[]): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    const body = { metadata: { uid, resourceVersion, finalizers } };
    this.#remember(await this.#client.patch({ name }, { type: "merge", body }));
  }

  async #writeReport(item: KubeItem, status: PoolReport): Promise<void> {
    const { name, uid, resourceVersion } = item.metadata;
    const body = { metadata: { uid, resourceVersion }, status };
    const written = await this.#client.patch({ name }, { type: "merge", body }, "status");
    if (written === undefined) return;
    this.#remember(written);
    this.#publishEvents(item, conditionsOf(item), status.conditions);
  }

  /** An event for each condition that turned for the worse, or back again. */
  #publishEvents({ metadata }: KubeItem, before: readonly Condition[], now: readonly Condition[]): void {
    const { name, uid } = metadata;
    for (const { type, status, reason, message } of now) {
      const last = before.find((condition) => condition.type === type);
      const bad = type === "Ready" ? "False" : "True";
      const worse = status === bad && (last?.status !== bad || last.reason !== reason);
      const better = last?.status === bad && status !== bad && status !== "Unknown";
      if (type === "Invalid" || !(worse || better)) continue; // Ready says that too
      this.#deps.events.record({
        regarding: { apiVersion: apiVersionOf(POOLS), kind: POOLS.kind, name, uid },
        type: worse ? "Warning" : "Normal",
        ...{ reason, action: "Watching", note: message },
      });
    }
  }
}

function boundTo(claim: Stored<"claim"> | undefined): string {
  if (claim === undefined || !isBound(claim.record)) return "";
  return claim.record.addresses.join(",");
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false;
  return true;
}

function isCooling(item: KubeItem): boolean {
  return new Fields(item).at("spec").get("releasedAt") !== undefined;
}

/** Nodes have pieces of it. */
function isCut({ spec }: Pool): boolean {
  return (spec.blockSize ?? spec.nodeCIDRs) !== undefined;
}
