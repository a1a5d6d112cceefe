// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import { sameSet } from "../../../allocator/base/same-set.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import { ownReader } from "../../../allocator/demand/foreign-pools.ts";
import { asksForOtherThan } from "../../../allocator/demand/unreviewed-pod.ts";
import { isDetached } from "../../../allocator/lifecycle/bind.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  EXEMPT_NAMESPACE,
  readRequest,
} from "../../../allocator/manifest/annotations.ts";
import {
  type ClaimRef,
  claimRefsFor,
  doesWithout,
  isLeftTo,
  matchesRef,
} from "../../../allocator/manifest/pod-claim.ts";
import { requestsAddress } from "../../../allocator/model/address-request.ts";
import type { Claim, ClaimAttachment } from "../../../allocator/model/claim.ts";
import type { ClusterState, PodState } from "../../../allocator/model/cluster-state.ts";
import type { PodMetadata } from "../../../allocator/model/identity.ts";
import { formatHolding } from "../../../allocator/model/interfaces.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { bindToNode, settle } from "./bind-to-node.ts";
import { claimOnNetwork } from "./claim-networks.ts";
import {
  besideOf,
  changed,
  isBarePodOfWorkloadName,
  isReplaced,
  missing,
  NO_CLAIM,
  ofWorkload,
  podReplaced,
  requestMismatch,
  resultOf,
  serves,
  servesBound,
} from "./claim-result.ts";
import type {
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  ClaimSource,
  NoClaim,
  PodRef,
  RequireOurs,
  SandboxEnd,
  SandboxNotice,
} from "./claim-source.ts";
import { type FormerAddresses, newClaimFor, reserveFormer } from "./new-claim.ts";
import { attachmentOf, reportSandbox, type SandboxNews } from "./sandbox-status.ts";

export interface EmbeddedClaimsOptions {
  readonly context: Context;
  readonly inventory: ClusterState;
  /** This node's name. */
  readonly node: string;
  /** A sandbox is gone: the claim may have lost what it was kept for. */
  readonly enqueueForGc: (claim: Claim) => void;
  /** Whether pods that ask for nothing are served out of blocks of the pool; absent: of none. */
  readonly hasBlocks?: (pool: string) => boolean;
  /** A claim that an ADD makes is this node's from its first write on: others may collect what is nobody's. Absent: it is bound later. */
  readonly bindsAtOnce?: boolean;
  /** This node is one of the hosts that share an etcd. */
  readonly onHosts?: boolean;
  /** Whether a claim of this pod that the view lacks is most likely not there: then making it is the proof. Absent: none is. */
  readonly isNew?: (pod: PodRef) => boolean;
  /** Gives back, for this ADD, what its container had before this plugin was. Absent: none had anything. */
  readonly former?: (request: AttachRequest) => Promise<FormerAddresses | undefined>;
  /** Resolves once the context's view has every record; until then nothing new is chosen. Absent: it has. */
  readonly whole?: Promise<void>;
}

/**
 * The claims side of the agent where allocator and agent share a process: finds the pod's claim, binds it to this
 * node through the same rule as the cluster's binder, and reports what became of the sandbox.
 */
export class EmbeddedClaims implements ClaimSource {
  readonly #options: EmbeddedClaimsOptions;
  /** claim -> as an ADD that is under way has made it, with its sandbox in it; whatever else befalls the claim ends that */
  readonly #made = new Map<string, Stored<"claim">>();
  readonly #seen = new WeakMap<ClaimMatch, Stored<"claim">>(); // what was found, to be bound -> its claim as it was then

  constructor(options: EmbeddedClaimsOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    const { inventory } = this.#options;
    const { namespace, name } = request.pod;
    const pod = await inventory.pod(namespace, name);
    if (pod !== undefined && isReplaced(pod, request)) return podReplaced(request.pod);
    const annotations = pod?.annotations ?? request.annotations ?? {};
    // The sandbox's own annotations, where the runtime sends them: the object may be another pod's of the name.
    const assigned = (request.annotations ?? annotations)[ASSIGNED_ADDRESSES]?.split(",");
    const said = assigned === undefined ? {} : { assigned };
    let declined: Claim | undefined;
    for (const ref of claimRefsFor(request.pod, annotations)) {
      const claim = await this.#look(ref.key, request.pod);
      if (claim === undefined || !isIts(ref, claim.record, pod)) continue;
      const isItsOwn = claim.record.binding?.podUID === request.pod.uid;
      const why = isItsOwn
        ? undefined
        : await this.#passesOn(claim.record, { ref, pod, annotations }, request, signal);
      if (isRefusal(why)) return why;
      if (why === "declined") {
        declined = claim.record;
        continue;
      }
      return this.#foundFor(claim, { token: ref.token, ...said }, { ...request, annotations });
    }
    return await this.#make(request, annotations, declined);
  }

  /** Whether a claim that another pod had, or nobody, is for this one. */
  async #passesOn(
    claim: Claim,
    { ref, pod, annotations }: Passing,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<"declined" | Refusal | undefined> {
    const { context, inventory } = this.#options;
    const own = ownReader(context);
    if (pod !== undefined && doesWithout(annotations, claim, false, own)) return "declined";
    const asking = ref.token === "" ? askingPod(claim, pod, request) : undefined;
    const knowledge = { view: context.view, inventory, own };
    const other = asking && (await asksForOtherThan(claim, { ...asking, annotations }, knowledge));
    if (other !== undefined) return other;
    if (pod !== undefined && isBarePodOfWorkloadName(pod, claim))
      await settle(this.#options, request, signal);
    return undefined;
  }

  async #look(key: string, pod: PodRef): Promise<Stored<"claim"> | undefined> {
    const { context, isNew } = this.#options;
    if (isNew?.(pod) === true && context.view.claim(key) === undefined) return undefined;
    return await context.store.get("claim", key);
  }

  /** Another interface of the pod may have the claim already; this one is then served like that of a pod without any. */
  #foundFor(
    claim: Stored<"claim">,
    said: Pick<ClaimMatch, "token" | "assigned">,
    request: AttachRequest,
  ): ClaimMatch | NoClaim | Refusal {
    const { key, record } = claim;
    const { pod, annotations = {} } = request;
    const network = claimOnNetwork(this.#options.context.view, record, request, annotations);
    if (network === "elsewhere") return NO_CLAIM;
    if (isRefusal(network)) return network;
    const { binding } = record;
    const isBoundToIt =
      binding?.node === this.#options.node && binding.podName === pod.name && binding.podUID === pod.uid;
    if (!serves(record, request, isBoundToIt ? binding.interface : undefined)) return NO_CLAIM;
    const found = { kind: "found", claim: key, ...said, ...besideOf(record) } as const;
    if (!isBoundToIt) this.#seen.set(found, claim);
    return found;
  }

  async attach(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    const made = this.#made.get(found.claim);
    this.#made.delete(found.claim);
    if (made !== undefined && made.revision === found.made) {
      return requestMismatch(made.record, request) ?? this.#resultOf(made.record, request);
    }
    const seen = this.#seen.get(found);
    const bound = await bindToNode(this.#options, { ...found, ...(seen && { seen }) }, request, signal);
    if (isRefusal(bound)) return bound;
    const { record } = bound;
    if (!servesBound(record, request)) return NO_CLAIM;
    const refusal = requestMismatch(record, request);
    if (refusal !== undefined) return refusal;
    const { pod, attachment, seenAt } = request;
    const notice = { claim: found.claim, pod, attachment, ...(seenAt && { seenAt }) };
    // Before it is answered: the end of an older sandbox must not make the claim look free while this one has it.
    const held = await this.#report(notice, { news: "attached", seen: bound, signal });
    // Until then it may have been at rest for a moment, and been changed or given back.
    if (!isDeepStrictEqual(held && formatHolding(held.record), formatHolding(record)))
      return changed(found.claim);
    return this.#resultOf(record, request);
  }

  #resultOf(claim: Claim, request: AttachRequest): ClaimResult | Refusal {
    return resultOf(this.#options.context.view, claim, request, request.annotations);
  }

  async detached(notice: SandboxEnd): Promise<void> {
    this.#made.delete(notice.claim);
    const seen = await this.#report(notice, { news: "detached" });
    if (seen !== undefined) this.#options.enqueueForGc(seen.record);
  }

  /** A sandbox was given the claim's addresses, or has had them since before this process began. */
  async attached(notice: SandboxNotice): Promise<void> {
    await this.#report(notice, { news: "attached" });
  }

  async lastSandboxes(claim: string): Promise<readonly ClaimAttachment[]> {
    const { context, node } = this.#options;
    const seen = this.#made.get(claim) ?? (await context.store.get("claim", claim));
    const attachment = seen?.record.status.attachment;
    return attachment?.node === node && !attachment.detached ? [attachment] : [];
  }

  inUse(): readonly string[] {
    const { context } = this.#options;
    return [...context.view.claims()].filter(({ record }) => this.#isInUse(record)).map(({ key }) => key);
  }

  /** As after a DEL, or the claim would be kept for nobody, for ever. */
  async absent(claim: string, requireOurs: RequireOurs = () => {}): Promise<void> {
    const { context, node, enqueueForGc } = this.#options;
    this.#made.delete(claim);
    const seen = await context.store.get("claim", claim);
    requireOurs();
    if (seen === undefined || !this.#isInUse(seen.record)) return;
    const { binding, status } = seen.record;
    const { containerID = "", interface: name = binding?.interface ?? "" } = status.attachment ?? {};
    const sandbox = { attachment: { containerID, interface: name } };
    const attachment = attachmentOf(seen.record, sandbox, { node, clock: context.clock, news: "detached" });
    const result = await context.store.report(seen, { attachment });
    if (result.kind === "replaced") enqueueForGc(result.stored.record);
  }

  #isInUse(claim: Claim): boolean {
    return claim.binding?.node === this.#options.node && !isDetached(claim);
  }

  /** No claim: a pod that asked for one is refused, one that did not is given an address of the configured pools. */
  async #make(
    request: AttachRequest,
    annotations: Labels,
    declined: Claim | undefined,
  ): Promise<ClaimMatch | NoClaim | Refusal> {
    const { context, inventory } = this.#options;
    const { namespace: name } = request.pod;
    const namespace = (await inventory.namespace(name)) ?? { name, labels: {}, annotations: {} };
    const asked = name === EXEMPT_NAMESPACE ? {} : readRequest(annotations, namespace);
    if (isRefusal(asked)) return asked;
    if (requestsAddress(asked) || annotations[ASSIGNED_CLAIM] !== undefined) return missing(request.pod);
    const { hasBlocks = () => false } = this.#options;
    if (request.pools.length === 0 || request.pools.some(hasBlocks)) return NO_CLAIM;
    const of = { ...this.#options, namespace, annotations, now: context.clock.now() };
    const allocation = newClaimFor(request, of);
    if (isRefusal(allocation)) return allocation;
    // Its name is in use: what would be reserved beside that claim could never be this pod's.
    if (declined !== undefined) return ofWorkload(declined, request.pools);
    await this.#options.whole;
    // a claim that a review made meanwhile, for the next pod of the name, is not this one's to change
    const former = await this.#options.former?.(request);
    const again = former && (await reserveFormer(context, former, request, of));
    const got = again ?? (await reserve(context, allocation, "nothing"));
    if (isRefusal(got)) return got;
    const { claim } = got;
    if (!sameSet(got.addresses, claim.record.addresses)) return changed(claim.key);
    const found = { kind: "found", claim: claim.key, token: "" } as const;
    if (!got.made || claim.record.status.attachment === undefined) return found;
    this.#made.set(claim.key, claim);
    return { ...found, made: claim.revision };
  }

  #report(notice: SandboxEnd, news: SandboxNews): ReturnType<typeof reportSandbox> {
    const { context, node } = this.#options;
    return reportSandbox({ ...context, node }, notice, news);
  }
}

interface Passing {
  readonly ref: ClaimRef;
  readonly pod: PodState | undefined;
  readonly annotations: Labels;
}

/** Of a pod that nobody keeps the claim of its name says whose it is. Undefined: none of its kind asks. */
function askingPod(
  { identity }: Claim,
  pod: PodState | undefined,
  { pod: { namespace, name } }: AttachRequest,
): Omit<PodMetadata, "annotations"> | undefined {
  if (namespace === EXEMPT_NAMESPACE) return undefined;
  const generateName = "";
  if (pod !== undefined) return { ...pod, generateName };
  const { kind, apiVersion, name: workload, uid = "" } = identity;
  const owner = kind === "Pod" ? {} : { owner: { kind, apiVersion, name: workload, uid } };
  return { namespace, name, generateName, labels: {}, ...owner };
}

function isIts(ref: ClaimRef, claim: Claim, pod: PodState | undefined): boolean {
  return matchesRef(ref, claim) || (pod !== undefined && isLeftTo(ref, pod.annotations, claim));
}
