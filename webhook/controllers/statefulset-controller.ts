// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { counted } from "../../allocator/base/counted.ts";
import { BerthError, isRefusal, isStoreFault, messageOf, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { predictFromCache } from "../../allocator/demand/cache-prediction.ts";
import { leftDefaults, type OwnAnnotations, ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import {
  ordinalRequests,
  readTemplate,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { isKeptForOwner, neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { workloadOf } from "../../allocator/model/claim-workload.ts";
import { type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { type Controller, runQueue } from "../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import { withUsablePools } from "../admission/pool-access.ts";
import { isSlotOfAnother } from "../admission/slot-names.ts";
import type { ObservedWorkload, WorkloadInformer } from "../cluster-state/informers.ts";
import { reasonOf } from "./conditions.ts";
import type { ControllerDeps } from "./controller.ts";

import { disclosedRefusal } from "./disclosed-refusal.ts";
import { PASSING } from "./passing-faults.ts";
import { onAddressFreed, onPoolChanged, Waiting } from "./retry-on-release.ts";

/** Ordinals of one workload that are looked at before others have their turn. */
const AT_ONCE = 50;
/** Where the store fails so many ordinals one after the other, the next would meet it too, and each may take as long as a call does. */
const MOST_STORE_FAULTS_IN_A_ROW = 5;
/** The same refusal is told again so often at most, for it names free neighbours that come and go. */
const TELL_AGAIN_MS = 60_000;
/** Until then the first full pass of the watches is over, or nearly. */
const UNREADY_MS = 200;

/**
 * Reserves the ordinals of StatefulSets in advance, each for itself: what one cannot have keeps no other from its
 * address. What a workload needs no longer is pointed out to the garbage collector.
 */
export function startWorkloads(deps: ControllerDeps): Controller {
  return new Workloads(deps).start();
}

type Ordinals = Iterator<{ readonly name: string; readonly allocation: AllocationRequest | Refusal }>;

/** One walk over the ordinals of a workload, as it was when the walk began. */
interface Round {
  readonly ordinals: Ordinals;
  /** Of its template, for the service account. */
  readonly podSpec: Fields;
  readonly refused: { readonly name: string; readonly obstacle: Refusal }[];
  /** Ordinals that met a fault: others may be had all the same. */
  readonly failed: { readonly name: string; readonly fault: unknown }[];
  storeFaultsInARow: number;
}

/** What keeps a pod from its address: a refusal, or a fault. */
type Obstacle = Pick<Refusal, "message" | "details"> & { readonly code: string };

class Workloads {
  readonly #deps: ControllerDeps;
  readonly #queue: WorkQueue;
  readonly #waiting: Waiting;
  /** Of what they ask, something is another system's as long as no pool of Berth's is meant. */
  readonly #elsewhere: Waiting;
  readonly #reported = new Map<string, { readonly what: string; readonly at: number }>(); // workload -> what was told, monotonic time
  readonly #rounds = new Map<string, Round>(); // workload -> its walk that is under way

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { clock, random, log } = deps.context;
    const { metrics } = deps;
    const work = (key: string, signal: AbortSignal) => this.#work(key, signal);
    this.#queue = new WorkQueue({ name: "workloads", work, clock, random, log, metrics });
    const later = (key: string, ms: number) => this.#queue.addAfter(key, ms);
    this.#waiting = new Waiting({ clock, random, later });
    this.#elsewhere = new Waiting({ clock, random, later });
  }

  start(): Controller {
    const { leadership, cache, watches } = this.#deps;
    const undo = [
      leadership.onGain(() => this.#addAll()),
      ...onAddressFreed(cache, this.#waiting),
      onPoolChanged(cache, this.#elsewhere),
      ...watches.workloads.map((watch) =>
        watch.reflector.onChange((key, now, before) => this.#changed(watch, key, { now, before })),
      ),
      watches.namespaces.onChange((name, now, before) => {
        if (!isDeepStrictEqual(now, before)) this.#addAll(name);
      }),
    ];
    this.#addAll();
    return runQueue(this.#queue, undo);
  }

  /** All workloads that have ordinals, or those of one namespace. */
  #addAll(namespace?: string): void {
    if (!this.#deps.leadership.leads()) return;
    for (const watch of this.#deps.watches.workloads.filter(hasOrdinals)) {
      for (const [key, { facts }] of watch.reflector.all()) {
        if (namespace === undefined || facts.namespace === namespace) this.#add(watch, key);
      }
    }
  }

  #add(watch: WorkloadInformer, name: string): void {
    const key = queueKey(watch, name);
    this.#rounds.delete(key);
    this.#queue.add(key);
  }

  /** A change of its status alone changes nothing here. */
  #changed(watch: WorkloadInformer, key: string, is: { now?: Seen; before?: Seen }): void {
    if (!this.#deps.leadership.leads() || isSame(is.now, is.before)) return;
    this.#enqueueChanged(watch, key, is.now);
    if (hasOrdinals(watch)) this.#add(watch, key);
  }

  /** Claims that are not kept as they should be now; the garbage collector's passes find them too, later. */
  #enqueueChanged({ apiVersion, kind }: WorkloadInformer, key: string, now: Seen): void {
    const [namespace = "", name = ""] = key.split("/");
    for (const { record } of this.#deps.cache.claimsOfWorkload(kind, namespace, name)) {
      const ref = workloadOf(record);
      if (ref === undefined || !isSameGroup(ref.apiVersion, apiVersion)) continue;
      const needed = now !== undefined && neededBy(now.facts, record.identity) === "needed";
      if (now === undefined || needed === (record.retained !== undefined)) this.#deps.enqueueForGc(record);
    }
  }

  async #work(key: string, signal: AbortSignal): Promise<Outcome> {
    const { leadership, cache, watches } = this.#deps;
    const seen = this.#find(key);
    if (!leadership.leads() || seen === undefined) {
      this.#rounds.delete(key);
      this.#settled(key);
      this.#elsewhere.leave(key);
      return DONE;
    }
    if (!cache.ready || !watches.namespaces.isSynced) return { kind: "again", afterMs: UNREADY_MS };
    this.#waiting.enter(key);
    try {
      const round = this.#rounds.get(key) ?? (await this.#begin(key, seen));
      if (round === undefined) return DONE;
      const over = await this.#goOn(round, signal);
      if (this.#rounds.get(key) !== round) return DONE; // it changed meanwhile, and waits in the queue
      return over ? this.#finish(key, seen, round) : { kind: "again", afterMs: 0, unfinished: true };
    } catch (error) {
      this.#rounds.delete(key);
      throw error;
    }
  }

  #find(key: string): Seen {
    for (const watch of this.#deps.watches.workloads) {
      const prefix = queueKey(watch, "");
      if (key.startsWith(prefix)) return watch.reflector.get(key.slice(prefix.length));
    }
    return undefined;
  }

  /** Undefined: its pods ask for nothing that could be reserved, or for something that nobody understands. */
  async #begin(key: string, seen: ObservedWorkload): Promise<Round | undefined> {
    const { context, inventory } = this.#deps;
    const space = await namespaceOf(inventory.cached, seen.facts.namespace);
    const { annotations, namespace } = this.#ownOf(key, templateAnnotations(seen.object), space);
    const { nodes } = inventory.cached;
    const template = readTemplate({ ...context, nodes }, seen.object, namespace, annotations);
    if (isRefusal(template)) this.#tell(key, seen, { obstacle: template, note: template.message });
    if (isRefusal(template) || template.exempt || !requestsAddress(template.request)) {
      this.#waiting.leave(key);
      return undefined;
    }
    const round = {
      ordinals: ordinalRequests(seen.object, template),
      podSpec: seen.object.spec.at("template").at("spec"),
      ...{ refused: [], failed: [], storeFaultsInARow: 0 },
    };
    this.#rounds.set(key, round);
    return round;
  }

  /** What is left to another system is looked at again when a pool changes: it may be made after those that ask for it. */
  #ownOf(key: string, annotations: Labels, space: NamespaceState): OwnAnnotations {
    const { context, dialects } = this.#deps;
    const own = ownAnnotations(context.view, annotations, space, dialects);
    const isLeft = own.left.length > 0 || leftDefaults(context.view, space.annotations, dialects).length > 0;
    if (isLeft) this.#elsewhere.park(key);
    else this.#elsewhere.leave(key);
    return own;
  }

  /** True: the walk is over. */
  async #goOn(round: Round, signal: AbortSignal): Promise<boolean> {
    for (let n = 0; n < AT_ONCE; n++) {
      if (signal.aborted || !this.#deps.leadership.leads()) return false;
      const next = round.ordinals.next();
      if (next.done === true) return true;
      await this.#tryOne(round, next.value);
      if (isCutShort(round)) return true;
    }
    return false;
  }

  async #tryOne(
    round: Round,
    { name, allocation }: { readonly name: string; readonly allocation: AllocationRequest | Refusal },
  ): Promise<void> {
    try {
      const obstacle = isRefusal(allocation) ? allocation : await this.#provide(allocation, round.podSpec);
      if (obstacle !== undefined) round.refused.push({ name, obstacle });
      round.storeFaultsInARow = 0;
    } catch (fault) {
      round.failed.push({ name, fault });
      round.storeFaultsInARow = isStoreFault(fault) ? round.storeFaultsInARow + 1 : 0;
    }
  }

  /** A claim that stands costs no call, but for the review of who may use its pool, which is remembered for a while. */
  async #provide(plain: AllocationRequest, podSpec: Fields): Promise<Refusal | undefined> {
    const { context, inventory } = this.#deps;
    const [allocation = plain] = await withUsablePools(this.#deps, plain.key.namespace, podSpec, [plain]);
    const prediction = predictFromCache(context, allocation);
    if (prediction.kind !== "unknown") return isRefusal(prediction) ? prediction : undefined;
    const slot = await isSlotOfAnother({ context, inventory: inventory.live }, [allocation]);
    if (slot !== undefined) return slot.refusal;
    const got = await reserve(
      context,
      { ...allocation, isKeptForOwner: this.#isKeptFor(allocation) },
      "workload",
    );
    return isRefusal(got) ? got : undefined;
  }

  /** One ordinal's name may be that of another workload's, of another API group: whose pods are there has the claim. */
  #isKeptFor({ identity }: AllocationRequest): (claim: Claim) => Promise<boolean> {
    return (claim) => isKeptForOwner(claim, identity, this.#deps.inventory.live);
  }

  #finish(key: string, seen: ObservedWorkload, round: Round): Outcome {
    const { refused, failed } = round;
    this.#rounds.delete(key);
    const [first] = failed;
    if (refused.length === 0 && first === undefined) {
      this.#settled(key);
      return DONE;
    }
    const lasting = failed.map(({ name, fault }) => ({ name, obstacle: obstacleOf(fault) }));
    const lacking = [
      ...lasting.filter(({ obstacle }) => !PASSING.has(obstacle.code)),
      ...refused.filter(({ obstacle }) => obstacle.code !== "CLAIM_CHANGED"),
    ];
    // a claim in use changes when its pod is replaced: a rolling update does that, `partition` and `OnDelete` do not
    if (lacking.length > 0) {
      const what = `${isCutShort(round) ? "or more " : ""}cannot have their addresses now`;
      this.#tellFirst(key, seen, lacking, what);
    } else this.#tellFirst(key, seen, refused, "have other addresses when they are created again");
    return first === undefined ? this.#waiting.refused(key) : { kind: "retry", cause: first.fault };
  }

  #tellFirst(
    key: string,
    seen: ObservedWorkload,
    kept: readonly { readonly name: string; readonly obstacle: Obstacle }[],
    what: string,
  ): void {
    const [first] = kept;
    if (first === undefined) return;
    const shown = (refusal: Refusal) => disclosedRefusal(this.#deps, refusal, seen.facts.namespace);
    const obstacle = isRefusal(first.obstacle) ? shown(first.obstacle) : first.obstacle;
    const words = `pod ${first.name}: ${obstacle.message}`;
    const note = kept.length > 1 ? `${counted(kept.length, "pod")} ${what}; the first, ${words}` : words;
    this.#tell(key, seen, { obstacle, note });
  }

  #settled(key: string): void {
    this.#waiting.leave(key);
    this.#reported.delete(key);
  }

  #tell(key: string, { object }: ObservedWorkload, about: { obstacle: Obstacle; note: string }): void {
    const { apiVersion, kind, metadata } = object;
    const { namespace, name, uid } = metadata;
    const { code, details } = about.obstacle;
    const waits = code === "CLAIM_CHANGED"; // for its pods, one after the other
    const what = JSON.stringify([uid, code, waits ? {} : details]);
    const at = this.#deps.context.clock.monotonic();
    const last = this.#reported.get(key);
    if (last?.what === what && at - last.at < TELL_AGAIN_MS) return;
    this.#reported.set(key, { what, at });
    const regarding = { apiVersion, kind, namespace, name, uid };
    const type = waits ? "Normal" : "Warning";
    const said = { type, reason: reasonOf(code), action: "Reserving", note: about.note } as const;
    this.#deps.events.record({ regarding, ...said });
  }
}

type Seen = ObservedWorkload | undefined;

/** What is one record's, or one policy's, lasts and says nothing of the next ordinal: it must not end each walk before that one. */
function isCutShort({ storeFaultsInARow }: Round): boolean {
  return storeFaultsInARow >= MOST_STORE_FAULTS_IN_A_ROW;
}

function obstacleOf(fault: unknown): Obstacle {
  const { code, details } = fault instanceof BerthError ? fault : { code: "INTERNAL", details: {} };
  return { code, details, message: messageOf(fault) };
}

function hasOrdinals({ kind }: WorkloadInformer): boolean {
  return kind === "StatefulSet";
}

function queueKey({ apiVersion, kind }: WorkloadInformer, name: string): string {
  return `${apiVersion} ${kind} ${name}`;
}

function isSame(a: Seen, b: Seen): boolean {
  return (
    isDeepStrictEqual(a?.facts, b?.facts) && isDeepStrictEqual(a?.object.json.value, b?.object.json.value)
  );
}
