// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type BindFacts, bind, isAtRest, PROMISE_MS } from "../../allocator/bind.ts";
import type { Claim, ClaimAttachment } from "../../allocator/claim.ts";
import { isLedTo, leadsOf } from "../../allocator/claim-of-pod.ts";
import { type Context, MAX_ROUNDS } from "../../allocator/context.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  EXEMPT_NAMESPACE,
  readRequest,
  withDefaults,
} from "../../allocator/dialects.ts";
import { BerthError, isRefusal, type Refusal } from "../../allocator/errors.ts";
import { intentOf } from "../../allocator/intent.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import type { Labels } from "../../allocator/ports.ts";
import { asksForAddress } from "../../allocator/request.ts";
import { reserve } from "../../allocator/reserve.ts";
import type { Stored } from "../../allocator/store/store.ts";
import {
  changed,
  contradiction,
  isSuccessor,
  missing,
  mooredOf,
  mustBeWanted,
  succeeded,
  UNMOORED,
} from "./answers.ts";
import type { AttachRequest, FoundClaim, Moored, Mooring, SandboxNotice, Unmoored } from "./mooring.ts";

export interface ClaimsOptions {
  readonly context: Context;
  readonly inventory: Inventory;
  /** This node's name. */
  readonly node: string;
  /** A sandbox is gone: the claim may have lost what it was kept for. */
  readonly suspect: (claim: Claim) => void;
  /** Resolves once the context's view has every record; until then nothing new is chosen. Absent: it has. */
  readonly whole?: Promise<void>;
}

/**
 * The claims side of the agent where allocator and agent share a process: finds the pod's claim, binds it to this
 * node through the same rule as the cluster's binder, and reports what became of the sandbox.
 */
export class Claims implements Mooring {
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, _signal: AbortSignal): Promise<FoundClaim | Unmoored | Refusal> {
    const { context, inventory } = this.#options;
    const { namespace, name } = request.pod;
    const pod = await inventory.pod(namespace, name);
    if (pod !== undefined && isSuccessor(pod, request)) return succeeded(request.pod);
    const annotations = pod?.annotations ?? request.annotations ?? {};
    // The sandbox's own annotations, where the runtime sends them: the object may be another pod's of the name.
    const assigned = (request.annotations ?? annotations)[ASSIGNED_ADDRESSES]?.split(",");
    const said = assigned === undefined ? {} : { assigned };
    for (const lead of leadsOf(request.pod, annotations)) {
      const claim = await context.store.get("claim", lead.key);
      if (claim === undefined || !isLedTo(lead, claim.record)) continue;
      return this.#foundFor(claim, { token: lead.token, ...said }, request);
    }
    return await this.#make(request, annotations);
  }

  /** Another interface of the pod may have the claim already; this one is then served like that of a pod without any. */
  #foundFor(
    { key, record }: Stored<"claim">,
    said: Pick<FoundClaim, "token" | "assigned">,
    { pod, attachment }: AttachRequest,
  ): FoundClaim | Unmoored {
    const { binding } = record;
    const lentToIt =
      binding?.node === this.#options.node && binding.podName === pod.name && binding.podUID === pod.uid;
    const only = record.interface ?? (lentToIt ? binding.interface : undefined);
    return only === undefined || only === attachment.interface
      ? { kind: "found", claim: key, ...said }
      : UNMOORED;
  }

  async attach(
    found: FoundClaim,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<Moored | Unmoored | Refusal> {
    const bound = await this.#bind(found, request, signal);
    if (isRefusal(bound)) return bound;
    const { record } = bound;
    if ((record.interface ?? record.binding?.interface) !== request.attachment.interface) return UNMOORED;
    const refusal = contradiction(record, request.addresses);
    if (refusal !== undefined) return refusal;
    const notice = { claim: found.claim, pod: request.pod, attachment: request.attachment };
    // Before it is answered: the end of an older sandbox must not make the claim look free while this one has it.
    const held = await this.#report(notice, "attached", signal);
    // Until then it may have been at rest for a moment, and been changed or given back.
    if (!isDeepStrictEqual(held?.record.addresses, record.addresses)) return changed(found.claim);
    return mooredOf(this.#options.context.view, record);
  }

  async detached(notice: SandboxNotice): Promise<void> {
    const seen = await this.#report(notice, "detached");
    if (seen !== undefined) this.#options.suspect(seen.record);
  }

  /** A sandbox was given the claim's addresses, or has had them since before this process began. */
  async attached(notice: SandboxNotice): Promise<void> {
    await this.#report(notice, "attached");
  }

  inUse(): readonly string[] {
    const { context } = this.#options;
    return [...context.view.claims()].filter(({ record }) => this.#isInUse(record)).map(({ key }) => key);
  }

  /** As after a DEL, or the claim would be kept for nobody, for ever. */
  async absent(claim: string): Promise<void> {
    const { context, node, suspect } = this.#options;
    const seen = await context.store.get("claim", claim);
    if (seen === undefined || !this.#isInUse(seen.record)) return;
    const { binding, status } = seen.record;
    const { containerID = "", interface: name = binding?.interface ?? "" } = status.attachment ?? {};
    const of = { node, containerID, interface: name, podUID: binding?.podUID ?? "" };
    const attachment = { ...of, since: context.clock.now(), detached: true };
    const result = await context.store.report(seen, { phase: "Detached", attachment });
    if (result.kind === "replaced") suspect(result.stored.record);
  }

  #isInUse(claim: Claim): boolean {
    return claim.binding?.node === this.#options.node && !isAtRest(claim);
  }

  /** No claim: a pod that asked for one is refused, one that did not is given an address of the configured pools. */
  async #make(request: AttachRequest, annotations: Labels): Promise<FoundClaim | Unmoored | Refusal> {
    const { context, inventory } = this.#options;
    const { namespace: name } = request.pod;
    const namespace = (await inventory.namespace(name)) ?? { name, labels: {}, annotations: {} };
    const asked = name === EXEMPT_NAMESPACE ? {} : readRequest(withDefaults(annotations, namespace));
    if (isRefusal(asked)) return asked;
    if (asksForAddress(asked) || annotations[ASSIGNED_CLAIM] !== undefined) return missing(request.pod);
    if (request.pools.length === 0) return UNMOORED;
    const entry = request.addresses.length === 0 ? {} : { entries: [request.addresses] };
    const identity = { kind: "Pod", apiVersion: "v1", name: request.pod.name };
    const intent = intentOf({
      standing: { kind: "named", claim: request.pod.name, identity },
      request: { pools: request.pools, ...entry },
      namespace,
      podLabels: {},
      start: 0,
      token: "",
      now: context.clock.now(),
    });
    if (isRefusal(intent)) return intent;
    await this.#options.whole;
    const got = await reserve(context, intent);
    return isRefusal(got) ? got : { kind: "found", claim: got.claim.key, token: "" };
  }

  async #bind(
    { claim, token, assigned }: FoundClaim,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<Stored<"claim"> | Refusal> {
    const { context, node } = this.#options;
    const { name, uid } = request.pod;
    const { interface: attachTo, containerID } = request.attachment;
    const said = assigned === undefined ? {} : { assigned };
    const bindee = { name, uid, node, token, interface: attachTo, containerID, ...said };
    return await bind(context, claim, bindee, async (lent) => {
      mustBeWanted(signal);
      return await this.#factsOf(lent);
    });
  }

  async #factsOf({ namespace, binding }: Claim): Promise<BindFacts> {
    const { inventory, context } = this.#options;
    if (binding === undefined) return { fenced: false, promiseOver: true };
    if (binding.node !== "") return { fenced: await inventory.fenced(binding.node), promiseOver: false };
    const pod = binding.podName === "" ? undefined : await inventory.pod(namespace, binding.podName);
    return {
      fenced: false,
      promiseOver: pod === undefined && context.clock.now() - binding.since >= PROMISE_MS,
    };
  }

  /** The claim as it stands once the news is in it; undefined when it is not this pod's any more, or says more already. */
  async #report(
    notice: SandboxNotice,
    news: News,
    signal?: AbortSignal,
  ): Promise<Stored<"claim"> | undefined> {
    const { claim: key, attachment } = notice;
    const { context, node } = this.#options;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const seen = await context.store.get("claim", key);
      if (seen === undefined) return undefined;
      const bearing = judgeNews(seen.record, notice, news, node);
      if (bearing !== "new") return bearing === "known" ? seen : undefined;
      mustBeWanted(signal);
      const next: ClaimAttachment = {
        node,
        containerID: attachment.containerID,
        interface: attachment.interface,
        podUID: seen.record.binding?.podUID ?? "",
        since: context.clock.now(),
        detached: news === "detached",
      };
      const phase = next.detached ? "Detached" : "Attached";
      const result = await context.store.report(seen, { phase, attachment: next });
      if (result.kind === "replaced") return result.stored;
    }
    throw new BerthError("REVISION_CONFLICT", `the status of claim ${key} kept changing`, {
      details: { claim: key },
    });
  }
}

type News = "attached" | "detached";

/**
 * What a piece of news means for the claim. A late DEL of an older sandbox says nothing about the one that came after
 * it (invariant 8), nor does anything about a pod that the claim is not lent to: pods of one name are told apart by
 * UID, which not every runtime says, and by node.
 */
function judgeNews(
  claim: Claim,
  { pod, attachment }: SandboxNotice,
  news: News,
  node: string,
): "new" | "known" | "foreign" {
  const { binding, status } = claim;
  if (claim.releasing === true || binding === undefined || binding.podName !== pod.name) return "foreign";
  if (binding.node !== node) return "foreign";
  if (pod.uid !== "" && binding.podUID !== "" && binding.podUID !== pod.uid) return "foreign";
  const known = status.attachment;
  if (known === undefined || known.podUID !== binding.podUID) return "new";
  const same = known.containerID === attachment.containerID;
  if (news === "attached") return same && !known.detached ? "known" : "new";
  if (!same) return "foreign";
  return known.detached ? "known" : "new";
}
