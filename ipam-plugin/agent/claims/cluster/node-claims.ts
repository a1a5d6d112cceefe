// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../../../allocator/base/errors.ts";
import type { Logger } from "../../../../allocator/base/ports.ts";
import { isDetached, planBind } from "../../../../allocator/lifecycle/bind.ts";
import type { Claim, ClaimAttachment } from "../../../../allocator/model/claim.ts";
import { FIRST_INTERFACE } from "../../../../allocator/model/interfaces.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import type { RecordOf } from "../../journal/runtime-records.ts";
import type { UnreadRecord } from "../../journal/unread-records.ts";
import { changed, NO_CLAIM, requestMismatch, resultOf, serves, throwIfCancelled } from "../claim-result.ts";
import type {
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  ClaimSource,
  IsKnown,
  NoClaim,
  RequireOurs,
  SandboxEnd,
  SandboxNotice,
} from "../claim-source.ts";
import { ClaimInterfaces } from "./claim-interfaces.ts";
import { ClaimSearch, type ClaimSearchOptions } from "./claim-search.ts";
import { type Holder, isNews, needs } from "./holder.ts";
import type { RecordedSandboxes } from "./recorded-sandboxes.ts";
import type { StatusWriter } from "./status-writer.ts";

interface NodeClaimsOptions extends Omit<ClaimSearchOptions, "interfaceOf"> {
  readonly reports: StatusWriter;
  /** Has the claim checked after that time, by `settle` and `report`. */
  readonly checkAfter: (claim: string, afterMs: number) => void;
  readonly log: Logger;
  /** Whether the runtime has a record of its own of an attachment; absent: it has none. */
  readonly recordOf?: RecordOf;
  /** What the runtime knew at the start; absent: nothing. */
  readonly recorded?: Pick<RecordedSandboxes, "of" | "journalled" | "unreadable">;
}

/** After the answer, which must not wait for it. */
const REPORT_MS = 200;
/** A runtime writes its record when the main plugin, and those that are chained to it, have ended. */
const RECORD_MS = 5_000;
const RECORD_AGAIN_MS = 1_000;

/**
 * The claims of this node in a cluster. Binding is the controllers' work; an ADD is answered from memory, and the
 * status of the claim is written behind its back. That is safe because a binding leaves this node only after this
 * agent has said `detached`, and it says so only about pods that will have no sandbox any more (ADR 0005).
 */
export class NodeClaims implements ClaimSource {
  readonly #options: NodeClaimsOptions;
  readonly #holders = new Map<string, Holder>(); // claim -> its last sandbox
  readonly #kept = new WeakMap<Holder, string>(); // those of which the runtime has its record, and with which addresses
  readonly #interfaces: ClaimInterfaces;
  readonly #search: ClaimSearch;

  constructor(options: NodeClaimsOptions) {
    this.#options = options;
    const { view, checkAfter } = options;
    const holderOf = (claim: string) => this.#holders.get(claim);
    this.#interfaces = new ClaimInterfaces({
      view,
      holderOf,
      checkSoon: (claim) => checkAfter(claim, REPORT_MS),
    });
    this.#search = new ClaimSearch({
      ...options,
      interfaceOf: (claim, request) => this.#interfaces.has(claim, request),
    });
  }

  async find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    return await this.#search.find(request, signal);
  }

  async attach(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    const { view, checkAfter } = this.#options;
    const seen = view.claim(found.claim);
    if (seen === undefined) return changed(found.claim);
    const answer = this.#answer(seen.record, found, request);
    if (answer.kind !== "claimed") return answer;
    const notice = noticeOf(found, request);
    try {
      const bound = this.#isProven(seen) ? answer : await this.#prove(found, request, signal);
      const answeredAt = this.#options.clock.monotonic();
      const boundTo = seen.record.binding?.podUID ?? "";
      if (bound.kind === "claimed") {
        this.#holders.set(found.claim, { ...notice, live: true, answeredAt, boundTo });
        this.#options.recorded?.journalled(notice.attachment);
      }
      return bound;
    } finally {
      checkAfter(found.claim, REPORT_MS);
    }
  }

  /** Told at the start: the status is put right once the claims are known. */
  async attached(notice: SandboxNotice): Promise<void> {
    this.#holders.set(notice.claim, { ...notice, live: true });
    this.#options.recorded?.journalled(notice.attachment);
    this.#options.checkAfter(notice.claim, 0);
  }

  /** Nothing has to be remembered: whether a sandbox has a claim that is bound to this node can be checked at any time. */
  async detached({ claim, attachment, remaining }: SandboxEnd): Promise<void> {
    this.#options.recorded?.journalled(attachment);
    const holder = this.#holders.get(claim);
    if (holder?.attachment.containerID === attachment.containerID) {
      this.#holders.set(claim, remaining ? { ...remaining, live: true } : { ...holder, live: false });
    }
    this.#options.checkAfter(claim, 0);
  }

  async lastSandboxes(claim: string): Promise<readonly ClaimAttachment[]> {
    const { view, node, recorded } = this.#options;
    const record = view.claim(claim)?.record;
    if (record === undefined) return [];
    const { attachment } = record.status;
    const byStatus = attachment?.node === node && !attachment.detached ? [attachment] : [];
    return [...byStatus, ...((await recorded?.of(record)) ?? [])];
  }

  inUse(): readonly string[] {
    const { view } = this.#options;
    if (!view.isSynced) return [];
    return [...view.claims()].filter(({ record }) => !isDetached(record)).map(({ key }) => key);
  }

  async absent(claim: string): Promise<void> {
    this.#options.checkAfter(claim, 0);
  }

  /**
   * No sandbox of this node has the claim, and none is about to: lets it go, unless its pod may have another one. To be
   * called in the claim's turn; throws what the API server's silence makes it throw. `isKnown`: to the journal.
   */
  async settle(claim: string, isKnown: IsKnown, requireOurs: RequireOurs = () => {}): Promise<void> {
    const { view, reports, recorded } = this.#options;
    const holder = this.#holders.get(claim);
    if (holder?.live === true) this.#holders.set(claim, { ...holder, live: false });
    const seen = view.isSynced ? this.#latest(claim) : undefined;
    if (seen?.record.binding === undefined || isDetached(seen.record)) return;
    const pod = { namespace: seen.record.namespace, name: seen.record.binding.podName };
    // its sandbox may be created again; what is seen here says so at no cost, that it is gone is for the API server to say
    if (needs(view.pod(pod), seen.record.binding)) return;
    const unread = await recorded?.unreadable(isKnown, seen.record);
    if (unread !== undefined) return this.#keep(claim, unread);
    if (needs(await this.#options.livePod(pod), seen.record.binding)) return;
    requireOurs(); // the API server may have been silent for long
    const isIts = holder?.pod.uid !== "" && holder?.pod.uid === seen.record.binding.podUID;
    await reports.detached(seen, isIts ? holder.attachment : undefined);
  }

  /** Writes which sandbox has the claim, unless its status says that, or others do. */
  async report(claim: string): Promise<void> {
    const { reports, node } = this.#options;
    const seen = this.#latest(claim);
    const holder = this.#holders.get(claim);
    if (seen === undefined || holder?.live !== true || !isNews(seen.record, holder, node)) return;
    if (await this.#isKnownElsewhere(seen.record, holder)) return;
    await reports.attached(
      seen,
      holder,
      (record) => this.#holders.get(claim) === holder && isNews(record, holder, node),
    );
  }

  #latest(claim: string): Stored<"claim"> | undefined {
    const { view, reports } = this.#options;
    const told = view.claim(claim);
    return told && reports.latest(told);
  }

  /**
   * The runtime's record names the sandbox to an agent without its journal, and the kubelet tells people which addresses
   * the pod has (ADR 0042). A status that names another sandbox is put right all the same.
   */
  async #isKnownElsewhere(record: Claim, holder: Holder): Promise<boolean> {
    const { claim, attachment, answeredAt } = holder;
    const { recordOf, clock, checkAfter } = this.#options;
    const { status, binding } = record;
    if (this.#interfaces.isAmongSeveral(record)) return false;
    if (recordOf === undefined || attachment.interface !== FIRST_INTERFACE) return false;
    const said = status.attachment;
    if (said?.detached === false || (said !== undefined && said.podUID === binding?.podUID)) return false;
    // each change of a pod asks, and a pod changes five times while it starts and ends
    if (this.#kept.get(holder) === record.addresses.join()) return true;
    const state = await recordOf(attachment, record.addresses);
    if (state === "kept") this.#kept.set(holder, record.addresses.join());
    if (state !== "missing" || answeredAt === undefined) return state === "kept";
    const isEarly = clock.monotonic() - answeredAt < RECORD_MS;
    if (isEarly) checkAfter(claim, RECORD_AGAIN_MS);
    return isEarly;
  }

  /** The watch told of a change of the claim; `now` undefined: it is bound to this node no more. */
  changed(claim: string, now: Stored<"claim"> | undefined): void {
    const { reports, log, node } = this.#options;
    const holder = this.#holders.get(claim);
    const uid = now?.record.binding?.podUID;
    if (uid === undefined || uid !== holder?.pod.uid) {
      if (holder?.live === false) this.#holders.delete(claim);
    }
    this.#interfaces.changed(claim, uid);
    if (now === undefined) reports.forget(claim);
    else reports.told(now);
    if (now !== undefined || holder?.live !== true) return;
    const { containerID } = holder.attachment;
    log.warn("a sandbox of this node has a claim that was taken from the node", { claim, containerID, node });
  }

  /** What the ADD is answered if the claim stands as it is given. */
  #answer(claim: Claim, found: ClaimMatch, request: AttachRequest): ClaimResult | NoClaim | Refusal {
    const { node, view, clock } = this.#options;
    const { name, uid } = request.pod;
    const said = found.assigned === undefined ? {} : { assigned: found.assigned };
    const target = { name, uid, node, token: found.token, ...said };
    const plan = planBind(claim, target, { fenced: false, holdExpired: false }, clock.now());
    if (isRefusal(plan)) return plan;
    if (plan.kind === "bind") return changed(found.claim);
    if (!serves(claim, request, claim.binding?.interface)) return NO_CLAIM;
    const annotations = request.annotations ?? view.pod(request.pod)?.annotations;
    return requestMismatch(claim, request) ?? resultOf(view, claim, request, annotations);
  }

  /**
   * Whether memory proves that the binding still stands. It may lag behind, but whatever moved the binding away came
   * after a `detached` of this agent about this very pod: of this process, which remembers, or of one before it, which
   * had seen the pod ended, while this one has seen it alive.
   */
  #isProven(seen: Stored<"claim">): boolean {
    const { view, reports } = this.#options;
    const { binding, namespace } = seen.record;
    const pod = binding && view.pod({ namespace, name: binding.podName });
    const isAlive = pod?.uid === binding?.podUID && pod?.finished === false;
    return isAlive && !reports.mayHaveReleased(seen);
  }

  /** By a read of the store and a write to it, so that no earlier write can still release the claim. */
  async #prove(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    const { reports } = this.#options;
    const notice = noticeOf(found, request);
    const judged: (ClaimResult | NoClaim | Refusal)[] = [];
    const written = await reports.attached(found.claim, notice, (claim) => {
      throwIfCancelled(signal);
      const answer = this.#answer(claim, found, request);
      judged.push(answer);
      return answer.kind === "claimed";
    });
    throwIfCancelled(signal); // the turn of the claim may be another's by now
    const last = judged.at(-1);
    if (last === undefined || (written === undefined && last.kind === "claimed")) return changed(found.claim);
    if (written !== undefined) reports.forget(found.claim);
    return last;
  }

  #keep(claim: string, { path }: UnreadRecord): void {
    const reason = `the runtime's record ${path} cannot be read, or could not be before; remove it once the container is gone`;
    this.#options.log.warn("claim is kept, as it is not known whether a sandbox has it", { claim, reason });
  }
}

function noticeOf({ claim }: ClaimMatch, { pod, attachment, seenAt }: AttachRequest): SandboxNotice {
  return { claim, pod, attachment, ...(seenAt && { seenAt }) };
}
