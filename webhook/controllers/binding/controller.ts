// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal, messageOf, type Refusal } from "../../../allocator/base/errors.ts";
import { type BindTarget, bind } from "../../../allocator/lifecycle/bind.ts";
import { NO_EVIDENCE } from "../../../allocator/lifecycle/binding-evidence.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../../kube/controller/workqueue.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";
import type { ControllerDeps } from "../controller.ts";
import { disclosedRefusal } from "../disclosed-refusal.ts";
import { PASSING } from "../passing-faults.ts";
import { type BindDecision, decideBinding } from "./bind-decision.ts";
import { gatherEvidence } from "./binding-evidence.ts";
import { leftHold } from "./left-holds.ts";
import { BindingMetrics } from "./metrics.ts";
import { type Blocker, obstacleOf, PodEvents } from "./pod-events.ts";
import { recreateClaim, settledClaim } from "./recreate-claim.ts";
import { StateTimer } from "./state-timer.ts";
import { WaitIndex } from "./wait-index.ts";
import { mayHaveClaim, WakeUps } from "./wake-ups.ts";

/** Most of a binding is waiting for the API server's answers. */
const AT_A_TIME = 16;
/** A replica that does not lead gives the leader this long to act first. */
const FOLLOWER_DELAY_MS = 2_000;
/** The watch may bring a claim after its pod; a claim that is missing for longer is gone. */
const LOST_AFTER_MS = 500;
/** An obstacle that passes sooner gets no event: a pod's records may come after it, and a node's report takes some time. */
const TELL_AFTER_MS = 2_000;
/** How often it looks whether everything was listed once. */
const POLL_MS = 50;
/** After a write the watch brings the change and wakes the pod; this is in case it was lost. */
const ECHO_MS = 1_000;
/** The grace of a node whose object is gone runs out without a change that would wake the pod. */
const GRACE_LOOK_MS = 5_000;

type Waits = Extract<BindDecision, { kind: "waits" }>;
type Again = Extract<Outcome, { kind: "again" }>;

/**
 * Binds claims to the pods that they are for, as soon as those are scheduled, and moves a binding only as
 * `planBind` allows. Runs on every replica: the leader acts at once, another one steps in after 2 s, and reads the claim
 * first. Decides from the watches; a binding costs a read of each reservation and one write, and a pod that is bound or waits costs
 * nothing.
 */
export function startBinder(deps: ControllerDeps): Controller {
  return new Binder(deps);
}

class Binder implements Controller {
  readonly #deps: ControllerDeps;
  readonly #queue: WorkQueue;
  readonly #waiters = new WaitIndex();
  readonly #notices: PodEvents;
  readonly #metrics: BindingMetrics;
  /** How long a binding has been due, a claim has had to be made again or changed, and something has been in the way. */
  readonly #due: StateTimer;
  readonly #unsettled: StateTimer;
  readonly #blocked: StateTimer;
  readonly #replaced = new Map<string, string>(); // pod key -> revision of its claim that was replaced here last
  /** Pods that have gone, or have ended, and for which a claim may still be held. */
  readonly #left = new Map<string, ObservedPod>(); // pod key -> as it was seen last
  readonly #stop = new AbortController();
  readonly #unsubscribe: readonly (() => void)[];
  readonly #ended: Promise<void>;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { leadership, events, metrics } = deps;
    const { clock, random, log } = deps.context;
    this.#notices = new PodEvents(events, clock, deps.boundEvents === true);
    this.#metrics = new BindingMetrics(clock, metrics);
    this.#due = new StateTimer(clock, random);
    this.#unsettled = new StateTimer(clock, random);
    this.#blocked = new StateTimer(clock, random);
    const work = (key: string) => this.#work(key);
    const paced = { concurrency: AT_A_TIME, metrics };
    this.#queue = new WorkQueue({ name: "binder", work, clock, random, log, ...paced });
    const add = (podKey: string) => this.#queue.add(podKey);
    const wakeUps = new WakeUps(deps, { waiters: this.#waiters, left: this.#left, add });
    this.#unsubscribe = [...wakeUps.follow(), leadership.onGain(() => this.#addAll())];
    this.#ended = this.#run();
  }

  async close(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#stop.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { context, cache, watches } = this.#deps;
    const { signal } = this.#stop;
    while (!signal.aborted && !(cache.ready && watches.pods.isSynced && watches.nodes.isSynced)) {
      await context.clock.sleep(POLL_MS, signal);
    }
    this.#addAll();
    await this.#queue.run(signal);
  }

  #addAll(): void {
    const { cache, watches } = this.#deps;
    for (const [key, pod] of watches.pods.all())
      if (!pod.exempt && mayHaveClaim(cache, key, pod)) this.#queue.add(key);
  }

  async #work(key: string): Promise<Outcome> {
    const [pod, left] = [this.#deps.watches.pods.get(key), this.#left.get(key)];
    const seen = pod ?? left;
    if (seen === undefined) return this.#seenSettled(key);
    try {
      if (left !== undefined) await this.#meetLeft(key, left);
      return pod === undefined ? this.#seenSettled(key) : await this.#lookAt(key, pod);
    } catch (error) {
      const code = error instanceof BerthError ? error.code : "INTERNAL";
      this.#deps.context.log.warn("pod cannot be bound, and is tried again", { pod: key, code, error });
      return this.#obstructed(key, seen, { code, message: messageOf(error) });
    }
  }

  /**
   * Writes the pod that is gone into its hold, for every replica to see. Otherwise the hold would keep the slot from the set's next pod
   * until its time is over.
   */
  async #meetLeft(key: string, left: ObservedPod): Promise<void> {
    const { context } = this.#deps;
    const held = leftHold(context.view, left);
    if (held !== undefined) await bind(context, held.claim, held.target, async () => NO_EVIDENCE);
    this.#left.delete(key);
  }

  async #lookAt(key: string, pod: ObservedPod): Promise<Outcome> {
    const { context, inventory, watches } = this.#deps;
    const { view, clock, dialects } = context;
    const now = clock.now();
    if (pod.node !== "") this.#metrics.scheduled(key, pod.uid);
    const cached = { inventory: inventory.cached, pods: watches.pods };
    const cachedEvidence = (claim: Claim, target: BindTarget) => gatherEvidence(cached, claim, target, now);
    const nodeLabels = (node: string) => watches.nodes.get(node)?.labels;
    const known = { view, dialects, nodeLabels, inventory: inventory.cached };
    const look = await decideBinding(pod, { ...known, cachedEvidence, now });
    switch (look.kind) {
      case "settled":
        return this.#seenSettled(key);
      case "waits":
        this.#waiters.wait(key, look.claims);
        return await this.#wait(key, pod, look);
      case "early":
        this.#waiters.wait(key, [look.claim.key]);
        return { kind: "again", afterMs: look.afterMs };
      default:
        return await this.#act(key, pod, look);
    }
  }

  /**
   * The pod was admitted already, so no review makes its claim again or changes it to the addresses that the pod was told: the binder
   * does.
   */
  async #wait(key: string, pod: ObservedPod, { refusal, settles }: Waits): Promise<Outcome> {
    const { code, message } = refusal;
    const age = this.#unsettled.ageOf(key, `${pod.uid} ${code} ${message}`);
    const waits = settles ? this.#delayFor(code) - age : undefined;
    const made = waits !== undefined && waits <= 0 ? await recreateClaim(this.#deps, pod) : undefined;
    if (made?.kind === "reserved") return { kind: "again", afterMs: ECHO_MS };
    const look = this.#untilGraceIsOver(refusal, this.#obstructed(key, pod, made ?? refusal));
    return waits === undefined || waits <= 0
      ? look
      : { kind: "again", afterMs: Math.min(waits, look.afterMs) };
  }

  /** The pod's ADD waits for its claim: the leader makes it at once, another replica steps in. */
  #delayFor(code: Refusal["code"]): number {
    const late = code === "CLAIM_MISSING" ? LOST_AFTER_MS : 0;
    return late + (this.#deps.leadership.leads() ? 0 : FOLLOWER_DELAY_MS);
  }

  async #act(
    key: string,
    pod: ObservedPod,
    { claim, target }: Extract<BindDecision, { kind: "due" }>,
  ): Promise<Outcome> {
    this.#waiters.wait(key, [claim.key]);
    this.#unsettled.forget(key);
    if (this.#replaced.get(key) === claim.revision) return { kind: "again", afterMs: ECHO_MS };
    const age = this.#due.ageOf(key, `${pod.uid} ${pod.node} ${claim.uid} ${claim.revision}`);
    if (!this.#deps.leadership.leads() && age < FOLLOWER_DELAY_MS) {
      return { kind: "again", afterMs: FOLLOWER_DELAY_MS - age };
    }
    const { context, inventory, watches } = this.#deps;
    const live = { inventory: inventory.live, pods: watches.pods };
    const settled = await settledClaim(this.#deps, pod, claim);
    if (isRefusal(settled)) return this.#obstructed(key, pod, settled);
    let last = settled.record;
    // what is due here for 2 s the leader may have bound, and the watch be behind: then there is nothing to write
    const from = this.#deps.leadership.leads() ? settled : settled.key;
    const bound = await bind(context, from, target, (seen) => {
      last = seen;
      return gatherEvidence(live, seen, target, context.clock.now());
    });
    if (isRefusal(bound)) return this.#obstructed(key, pod, bound);
    this.#replaced.set(key, claim.revision);
    if (pod.node !== "" && !isBoundTo(last, pod)) this.#tellBound(pod, bound);
    return this.#settled(key);
  }

  #tellBound(pod: ObservedPod, { key, record }: Stored<"claim">): void {
    const { context } = this.#deps;
    this.#notices.bound(pod, record);
    this.#metrics.bound(`${pod.namespace}/${pod.name}`, pod.uid);
    context.log.info("claim is bound", {
      claim: key,
      pod: `${pod.namespace}/${pod.name}`,
      uid: pod.uid,
      node: pod.node,
    });
  }

  /**
   * Something is in the way. The leader tells it in an event once it has lasted, even if its words have changed meanwhile. The pod is
   * looked at again when something changes, and after a pause that grows.
   */
  #obstructed(key: string, pod: ObservedPod, blocker: Blocker): Again {
    this.#metrics.blocked(key, blocker.code);
    const age = this.#blocked.ageOf(key, `${pod.uid} ${obstacleOf(blocker)}`);
    const tell = age >= TELL_AFTER_MS && !PASSING.has(blocker.code) && this.#deps.leadership.leads();
    const shown = (refusal: Refusal) => disclosedRefusal(this.#deps, refusal, pod.namespace);
    if (tell) this.#notices.blocked(pod, isRefusal(blocker) ? shown(blocker) : blocker);
    return { kind: "again", afterMs: this.#blocked.next(key) };
  }

  #untilGraceIsOver({ details }: Refusal, { afterMs }: Again): Again {
    const { node } = details;
    const absent = node !== undefined && this.#deps.watches.nodes.get(node) === undefined;
    return { kind: "again", afterMs: absent ? Math.min(afterMs, GRACE_LOOK_MS) : afterMs };
  }

  #seenSettled(key: string): Outcome {
    this.#replaced.delete(key);
    return this.#settled(key);
  }

  #settled(key: string): Outcome {
    this.#waiters.forget(key);
    this.#notices.forget(key);
    this.#metrics.forget(key);
    this.#due.forget(key);
    this.#unsettled.forget(key);
    this.#blocked.forget(key);
    return DONE;
  }
}

/** Then another replica has bound it. */
function isBoundTo({ binding }: Claim, pod: ObservedPod): boolean {
  return binding?.podUID === pod.uid && binding.node === pod.node;
}
