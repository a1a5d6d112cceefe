// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { leftDefaults, type OwnAnnotations, ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import {
  ordinalRequests,
  readTemplate,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import { neededBy } from "../../allocator/lifecycle/claim-owner.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { workloadOf } from "../../allocator/model/claim-workload.ts";
import { type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { type Controller, runQueue } from "../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import type { ObservedWorkload, WorkloadInformer } from "../cluster-state/informers.ts";
import type { ControllerDeps } from "./controller.ts";
import { OrdinalFaults } from "./ordinal-faults.ts";
import { continueRound, type Round } from "./ordinal-round.ts";
import { PASSING } from "./passing-faults.ts";
import { onAddressFreed, onPoolChanged, Waiting } from "./retry-on-release.ts";
import { obstacleOf, WorkloadEvents } from "./workload-events.ts";

/** Until then the first full pass of the watches is over, or nearly. */
const UNREADY_MS = 200;

/**
 * Reserves the ordinals of StatefulSets in advance, each for itself: what one cannot have keeps no other from its
 * address. What a workload needs no longer is pointed out to the garbage collector.
 */
export function startWorkloads(deps: ControllerDeps): Controller {
  return new Workloads(deps).start();
}

class Workloads {
  readonly #deps: ControllerDeps;
  readonly #queue: WorkQueue;
  readonly #waiting: Waiting;
  /** Of what they ask, something is another system's as long as no pool of Berth's is meant. */
  readonly #elsewhere: Waiting;
  readonly #events: WorkloadEvents;
  readonly #rounds = new Map<string, Round>(); // workload -> its walk that is under way
  readonly #faults: OrdinalFaults;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#events = new WorkloadEvents(deps);
    const { clock, random, log } = deps.context;
    const { metrics } = deps;
    const work = (key: string, signal: AbortSignal) => this.#work(key, signal);
    this.#queue = new WorkQueue({ name: "workloads", work, clock, random, log, metrics });
    const later = (key: string, ms: number) => this.#queue.addAfter(key, ms);
    this.#waiting = new Waiting({ clock, random, later });
    this.#elsewhere = new Waiting({ clock, random, later });
    this.#faults = new OrdinalFaults(clock);
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
      watches.namespaces.onChange((name) => this.#addAll(name)),
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
      const over = await continueRound(this.#deps, round, signal);
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
    if (isRefusal(template)) this.#events.tell(key, seen, { obstacle: template, note: template.message });
    if (isRefusal(template) || template.exempt || !requestsAddress(template.request)) {
      this.#waiting.leave(key);
      this.#faults.over(key);
      return undefined;
    }
    const round = {
      ordinals: ordinalRequests(seen.object, template, this.#faults.next(key)),
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

  #finish(key: string, seen: ObservedWorkload, round: Round): Outcome {
    const { refused, failed } = round;
    this.#rounds.delete(key);
    const [first] = failed;
    if (refused.length === 0 && first === undefined) {
      this.#settled(key);
      return DONE;
    }
    const faults = failed.map(({ name, fault }) => ({ name, obstacle: obstacleOf(fault) }));
    const passing = faults.filter(({ obstacle }) => PASSING.has(obstacle.code));
    const haveLasted = this.#faults.met(key, passing.length > 0, round.next);
    const lacking = [
      ...faults.filter((fault) => haveLasted || !passing.includes(fault)),
      ...refused.filter(({ obstacle }) => obstacle.code !== "CLAIM_CHANGED"),
    ];
    // a claim in use changes when its pod is replaced: a rolling update does that, `partition` and `OnDelete` do not
    if (lacking.length > 0) {
      const what = `${round.next === undefined ? "" : "or more "}cannot have their addresses now`;
      this.#events.tellFirst(key, seen, lacking, what);
    } else this.#events.tellFirst(key, seen, refused, "have other addresses when they are created again");
    return first === undefined ? this.#waiting.refused(key) : { kind: "retry", cause: first.fault };
  }

  #settled(key: string): void {
    this.#waiting.leave(key);
    this.#events.forget(key);
    this.#faults.over(key);
  }
}

type Seen = ObservedWorkload | undefined;

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
