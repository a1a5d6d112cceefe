// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../../allocator/base/errors.ts";
import { requestFromSpec } from "../../../allocator/demand/build-request.ts";
import { predictFromCache } from "../../../allocator/demand/cache-prediction.ts";
import { ownReader } from "../../../allocator/demand/foreign-pools.ts";
import { takingOver } from "../../../allocator/lifecycle/allocation-request.ts";
import { isDetached } from "../../../allocator/lifecycle/bind.ts";
import { startCooldownIfDropped } from "../../../allocator/lifecycle/release.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import { doesWithout, matchesRef } from "../../../allocator/manifest/pod-claim.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { namespaceOf } from "../../../allocator/model/cluster-state.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { Client } from "../../../kube/api/client.ts";
import { apiVersionOf, CLAIMS, type KubeItem } from "../../../kube/api/resource.ts";
import { type Controller, runQueue } from "../../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../../kube/controller/workqueue.ts";
import { withoutManagedFields } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import { disclosedRefusal } from "../disclosed-refusal.ts";
import { onAddressFreed, Waiting } from "../retry-on-release.ts";
import {
  awaited,
  type ClaimReport,
  type ClaimVerdict,
  newsIn,
  onlyMessageChanged,
  reportOn,
} from "./status.ts";
import { Successors } from "./successors.ts";

/** Until then the first full pass of the watches is over, or nearly. */
const UNREADY_MS = 200;
/** Until then the watch has brought what was just written, or what somebody else wrote. */
const BEHIND_MS = 100;
/** The same refusal is put into newer words so often at most. */
const REWORD_MS = 60_000;

/**
 * Reserves for the claims that people make, says in their status what has become of it, and gives back at once what a
 * claim held that was deleted by hand, whoever made it. Whoever deletes one that a pod uses is told what it waits for.
 */
export function startClaims(deps: ControllerDeps): Controller {
  return new Claims(deps).start();
}

/** What was decided, and of which revision of the claim it is true. */
interface Decided {
  readonly verdict: ClaimVerdict;
  readonly revision: string;
}

/** What of a pod makes a difference here. */
interface IsUp {
  readonly up: boolean;
}

class Claims {
  readonly #deps: ControllerDeps;
  readonly #client: Client;
  readonly #queue: WorkQueue;
  readonly #waiting: Waiting;
  readonly #gone = new Map<string, Claim[]>(); // namespace/name -> what was deleted and held addresses
  readonly #successors = new Successors();
  readonly #writtenAt = new Map<string, number>(); // namespace/name -> monotonic time of the last report
  readonly #reported = new Map<string, string>(); // namespace/name -> UID of the claim whose deleter was told
  readonly #items = new Map<string, KubeItem>(); // namespace/name -> the object as it was last seen

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    this.#client = new Client(deps.connection, CLAIMS);
    const { clock, random, log } = deps.context;
    const { metrics } = deps;
    const work = (key: string) => this.#work(key);
    this.#queue = new WorkQueue({ name: "claims", work, clock, random, log, metrics });
    this.#waiting = new Waiting({ clock, random, later: (key, ms) => this.#queue.addAfter(key, ms) });
  }

  start(): Controller {
    const { leadership, cache, watches } = this.#deps;
    const undo = [
      leadership.onGain(() => this.#addAll()),
      ...onAddressFreed(cache, this.#waiting),
      cache.onChange("claim", (key, now, before) => this.#changed(key, now, before)),
      watches.namespaces.onChange(() => this.#waiting.freed()),
      watches.pods.onChange((key, now, before) => this.#podChanged(key, now, before)),
    ];
    this.#addAll();
    return runQueue(this.#queue, undo);
  }

  #addAll(): void {
    if (!this.#deps.leadership.leads()) return;
    for (const { key, record } of this.#deps.cache.claims()) {
      this.#successors.changed(key, record);
      if (concerns(record)) this.#queue.add(key);
    }
  }

  #changed(key: string, now: Stored<"claim"> | undefined, before: Stored<"claim"> | undefined): void {
    this.#successors.changed(key, now?.record);
    if (!this.#deps.leadership.leads()) return;
    if (before !== undefined && before.uid !== now?.uid) this.#lost(key, before.record);
    if ((now !== undefined && concerns(now.record)) || this.#gone.has(key)) this.#queue.add(key);
  }

  /** Pods change often, and hardly ever in this. */
  #podChanged(key: string, now: IsUp | undefined, before: IsUp | undefined): void {
    if (!this.#deps.leadership.leads() || (now?.up ?? false) === (before?.up ?? false)) return;
    if (this.#deps.cache.claim(key)?.record.handMade === true) this.#queue.add(key);
  }

  /** The pod of its name is up with another address. */
  #isKeptOut({ key, record }: Stored<"claim">): boolean {
    const pod = this.#deps.watches.pods.get(key);
    if (pod === undefined || pod.exempt || pod.ended || record.binding?.podUID === pod.uid) return false;
    const own = ownReader(this.#deps.context);
    return matchesRef({ key, token: "" }, record) && doesWithout(pod.annotations, record, pod.up, own);
  }

  /** A sandbox may still have the addresses of a claim that was in use: those are left to the garbage collector. */
  #lost(key: string, claim: Claim): void {
    this.#forget(key);
    if (claim.nonce === "" || claim.releasing === true || !isDetached(claim)) return;
    this.#gone.set(key, [...(this.#gone.get(key) ?? []), claim]);
  }

  async #work(key: string): Promise<Outcome> {
    const { leadership, cache, watches } = this.#deps;
    if (!leadership.leads()) return this.#forget(key);
    if (!cache.ready || !watches.namespaces.isSynced) return { kind: "again", afterMs: UNREADY_MS };
    await this.#giveBack(key);
    const seen = cache.claim(key);
    if (seen?.record.deleting === true) return this.#outlast(key, seen);
    if (seen?.record.handMade !== true || seen.record.releasing === true) return this.#forget(key);
    this.#waiting.enter(key);
    const decided = await this.#decide(seen);
    const state = { isKeptOut: this.#isKeptOut(seen), waitsFor: awaited(seen.record, decided.verdict) };
    if (!(await this.#report(key, decided, state))) return { kind: "again", afterMs: BEHIND_MS };
    if (isRefusal(decided.verdict)) return this.#waiting.refused(key);
    this.#waiting.leave(key);
    return DONE;
  }

  /** It is deleted, and stays until the garbage collector lets it go. */
  #outlast(key: string, { uid, record }: Stored<"claim">): Outcome {
    const { addresses, binding, name, namespace } = record;
    const waits = record.releasing !== true && !isDetached(record);
    if (waits && this.#reported.get(key) !== uid) {
      const pod = `pod ${binding?.podName ?? ""} on node ${binding?.node ?? ""}`;
      const then = "until its sandbox has ended; delete that pod, or fence its node if it is lost";
      this.#deps.events.record({
        regarding: { apiVersion: apiVersionOf(CLAIMS), kind: CLAIMS.kind, namespace, name, uid },
        ...{ type: "Normal", reason: "InUse", action: "Deleting" },
        note: `the claim is deleted, and stays with ${addresses.join(" and ")} for ${pod} ${then}`,
      });
    }
    const outcome = this.#forget(key);
    if (waits) this.#reported.set(key, uid);
    return outcome;
  }

  #forget(key: string): Outcome {
    this.#items.delete(key);
    this.#reported.delete(key);
    this.#writtenAt.delete(key);
    this.#waiting.leave(key);
    if (!this.#deps.leadership.leads()) this.#gone.delete(key);
    return DONE;
  }

  /** By compare-and-set, and only what no claim of the name relies on: there may be a new one already. */
  async #giveBack(key: string): Promise<void> {
    const { context } = this.#deps;
    const lost = this.#gone.get(key) ?? [];
    for (const { addresses, nonce } of lost) {
      for (const successor of this.#successors.of(key)) await this.#takeOver(successor);
      for (const address of addresses) await startCooldownIfDropped(context, address, nonce);
      context.log.info("claim is gone, and its addresses cool", {
        claim: key,
        address: addresses.join(","),
      });
    }
    const since = this.#gone.get(key)?.slice(lost.length) ?? [];
    if (since.length > 0) this.#gone.set(key, since);
    else this.#gone.delete(key);
  }

  /** What the claim left that is gone: it was unused, so that nothing has to cool first. */
  async #takeOver(key: string): Promise<void> {
    const seen = this.#deps.cache.claim(key);
    if (seen !== undefined) await this.#decide(seen, { wasUnused: true });
    this.#queue.add(key); // its status has yet to say what has become of it
  }

  async #decide(seen: Stored<"claim">, { wasUnused } = { wasUnused: false }): Promise<Decided> {
    const { context, inventory } = this.#deps;
    const { clock, random } = context;
    const namespace = await namespaceOf(inventory.cached, seen.record.namespace);
    const wanted = requestFromSpec(seen.record, namespace, { token: random.token(), now: clock.now() });
    const { takesOver } = wanted.constraints;
    // what was deleted meanwhile is not made again as Berth's own
    const byPerson = { ...wanted, userRequested: true as const };
    const allocation = takesOver === undefined ? byPerson : takingOver(byPerson, { ...takesOver, wasUnused });
    const prediction = predictFromCache(context, allocation);
    if (isRefusal(prediction)) return { verdict: prediction, revision: seen.revision };
    const got = prediction.kind === "unknown" ? await reserve(context, allocation, "pod") : prediction;
    if (isRefusal(got)) return { verdict: got, revision: seen.revision };
    const { record, revision } = got.claim;
    return { verdict: { kind: "reserved", addresses: record.addresses }, revision };
  }

  /** False: the claim is another one by now, so that nothing was said. */
  async #report(
    key: string,
    { verdict, revision }: Decided,
    { isKeptOut, waitsFor }: { readonly isKeptOut: boolean; readonly waitsFor: string | undefined },
  ): Promise<boolean> {
    const item = await this.#item(key, revision);
    if (item === undefined) return false;
    const said = isRefusal(verdict)
      ? disclosedRefusal(this.#deps, verdict, key.split("/")[0] ?? "")
      : verdict;
    const report = reportOn(item, said, this.#deps.context.clock.now(), isKeptOut);
    if (report === undefined || (onlyMessageChanged(item, report) && this.#isRecent(key))) return true;
    const { name, namespace = "", uid, resourceVersion } = item.metadata;
    const body = { metadata: { uid, resourceVersion }, status: report };
    const written = await this.#client.patch({ namespace, name }, { type: "merge", body }, "status");
    if (written === undefined) return false;
    this.#items.set(key, withoutManagedFields(written));
    this.#writtenAt.set(key, this.#deps.context.clock.monotonic());
    this.#publishEvents(item, report, waitsFor);
    return true;
  }

  #isRecent(key: string): boolean {
    const writtenAt = this.#writtenAt.get(key) ?? Number.NEGATIVE_INFINITY;
    return this.#deps.context.clock.monotonic() - writtenAt < REWORD_MS;
  }

  /** The object as of that revision: conditions and generation are not in the record. */
  async #item(key: string, revision: string): Promise<KubeItem | undefined> {
    const known = this.#items.get(key);
    if (known?.metadata.resourceVersion === revision) return known;
    const [namespace = "", name = ""] = key.split("/");
    const item = await this.#client.get({ namespace, name });
    if (item?.metadata.resourceVersion !== revision) return undefined;
    this.#items.set(key, withoutManagedFields(item));
    return item;
  }

  /** Once for each thing that is new; what goes on for long stands in the condition. */
  #publishEvents(item: KubeItem, report: ClaimReport, waitsFor: string | undefined): void {
    const { namespace = "", name, uid } = item.metadata;
    const regarding = { apiVersion: apiVersionOf(CLAIMS), kind: CLAIMS.kind, namespace, name, uid };
    for (const news of newsIn(item, report, waitsFor)) this.#deps.events.record({ regarding, ...news });
  }
}

/** Whether there is anything to do for the claim. */
function concerns({ handMade, deleting }: Claim): boolean {
  return handMade === true || deleting === true;
}
