// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { describeDryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { isSatisfied } from "../../allocator/demand/cache-prediction.ts";
import {
  dryRunPod,
  isExempt,
  type PodAllocation,
  readPod,
  resolvePod,
} from "../../allocator/demand/pod-allocation.ts";
import { withMacsSaid } from "../../allocator/demand/said-macs.ts";
import { allocateSlot, giveHoldBack } from "../../allocator/demand/slots.ts";
import { cappedTtl, fallenBack, idleFallback, notKept } from "../../allocator/demand/unkept-requests.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { Reserved } from "../../allocator/lifecycle/allocation-request.ts";
import { isHeldForAnother } from "../../allocator/lifecycle/claim-conflicts.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  REVIEWED_REQUEST,
  readRequest,
} from "../../allocator/manifest/annotations.ts";
import { notesOn } from "../../allocator/manifest/dialects.ts";
import { type OfPod, withGivenIps } from "../../allocator/manifest/fallback-annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  otherMac,
  strangeMac,
  warningsOfUnwritten,
  withMacs,
} from "../../allocator/manifest/mac-annotations.ts";
import { idleRequests, writtenByOthers } from "../../allocator/manifest/own-keys.ts";
import { reviewedRequest } from "../../allocator/manifest/reviewed-request.ts";
import type { Request } from "../../allocator/model/address-request.ts";
import type { Claim, ClaimRequest } from "../../allocator/model/claim.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import { parseMacs } from "../../allocator/model/interface-macs.ts";
import { formatAddresses, parseAddresses } from "../../allocator/model/interfaces.ts";
import type { PodNodes } from "../../allocator/model/node-terms.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, closedNamespace, expectKind, objectOf } from "./admission-context.ts";
import { judgeAside, ownPod } from "./foreign-review.ts";
import { warningsOfNodes } from "./nodeless-pools.ts";
import { unknownOwner } from "./owner-check.ts";
import { answer, answerExempt, nodesOf } from "./pod-answer.ts";
import { withUsablePools } from "./pool-access.ts";
import { isSlotOfAnother } from "./slot-names.ts";
import { warningsOfLabels } from "./stray-labels.ts";
import { unknownIn } from "./unknown-keys.ts";

/** `/mutate/pods`: reserves what a pod asks for, or finds its claim, and writes both into the pod. */
export function mutatePods(admission: AdmissionContext): Handler {
  return async (request, signal) => {
    if (request.operation !== "CREATE" || request.subResource !== "") return allowed(request.uid);
    const pod = objectOf(request, "object");
    if (isRefusal(pod)) return denied(request.uid, pod);
    const exempt = isExempt(pod);
    const wrong = expectKind(pod, ["Pod"]) ?? (exempt ? undefined : unknownIn(request, pod, "Pod"));
    if (wrong !== undefined) return denied(request.uid, wrong);
    if (!exempt) return await decide(admission, request, pod, signal);
    return answerExempt(admission, request, pod);
  };
}

async function decide(
  admission: AdmissionContext,
  request: AdmissionRequest,
  pod: KubeObject,
  signal: AbortSignal,
): Promise<AdmissionResponse> {
  const known = await admission.inventory.namespace(pod.metadata.namespace);
  const namespace = known ?? bareNamespace(pod.metadata.namespace);
  const { own, left, defaults } = await ownPod(admission, pod, namespace);
  const input = await readPod(admission.context, admission.inventory, own, defaults);
  if (isRefusal(input)) return denied(request.uid, input);
  const podAllocation = await resolvePod(admission.context, input);
  const judged = judgeAside(admission, pod.metadata, left, namedAddresses(input.request, podAllocation));
  if (isRefusal(judged)) return denied(request.uid, judged);
  if (podAllocation === undefined) {
    const { annotations } = pod.metadata;
    const idle = [
      ...writtenByOthers(annotations, "are removed from this pod"),
      ...idleRequests(own.metadata.annotations),
    ];
    const warnings = [...warningsOfLabels(admission.context.view, pod.metadata.labels), ...idle, ...judged];
    return answer(request, pod, {}, { warnings });
  }
  if (isRefusal(podAllocation)) return denied(request.uid, podAllocation);
  const strange = strangeMac(pod.metadata.annotations, input.request.interfaces);
  if (strange !== undefined) return denied(request.uid, strange);
  const fit = withMacsSaid(pod.metadata.annotations, podAllocation);
  if (isRefusal(fit)) return denied(request.uid, fit);
  const slot =
    input.podIdentity.kind === "named" ? await isSlotOfAnother(admission, podAllocation.requests) : undefined;
  if (slot !== undefined) return denied(request.uid, slot.refusal);
  const closed =
    closedNamespace(admission, namespace.name, known) ?? (await unknownOwner(admission, pod, podAllocation));
  if (closed !== undefined) return denied(request.uid, closed);
  const admitted = {
    pod,
    podAllocation: await withPermittedPools(admission, pod, fit),
    warnings: [...requestWarnings(admission, own, input.podIdentity), ...judged],
    signal,
  };
  return request.dryRun
    ? await dryRunReview(admission, request, admitted)
    : await admit(admission, request, admitted);
}

/** The addresses that the pod names, or that its entry of a list does. */
function namedAddresses(
  { entries = [] }: Request,
  podAllocation: PodAllocation | Refusal | undefined,
): ReadonlySet<Address> {
  const waiting: ClaimRequest = podAllocation?.kind === "own" ? podAllocation.requests[0].constraints : {};
  return new Set([...entries.flat(), ...(waiting.addresses ?? [])]);
}

/** Warnings of what the pod asks for itself and will not keep. Defaults of its namespace get none: they are for pods of any kind. */
function requestWarnings(
  { context }: AdmissionContext,
  { metadata: { annotations, labels, owner } }: KubeObject,
  podIdentity: PodIdentity,
): readonly string[] {
  const request = readRequest(annotations);
  if (isRefusal(request)) return [];
  const pods = { podIdentity, request, ...(owner === undefined ? {} : { owner }) };
  return [
    ...warningsOfLabels(context.view, labels),
    ...notKept(pods),
    ...idleFallback(request),
    ...notesOn(annotations),
    ...cappedTtl(context.view, pods),
  ];
}

/** What is to be allocated, with the pools that the pod's service account may use. */
async function withPermittedPools(
  admission: AdmissionContext,
  pod: KubeObject,
  { kind, requests }: PodAllocation,
): Promise<PodAllocation> {
  const permitted = await withUsablePools(admission, pod.metadata.namespace, pod.spec, requests);
  if (kind === "anySlot") return { kind, requests: permitted };
  const [own = requests[0]] = permitted;
  return { kind, requests: [own] };
}

async function dryRunReview(
  admission: AdmissionContext,
  request: AdmissionRequest,
  { pod, podAllocation, warnings }: Admitted,
): Promise<AdmissionResponse> {
  const { context, inventory } = admission;
  const { annotations } = pod.metadata;
  const would = await dryRunPod(context, inventory, podAllocation);
  if (isRefusal(would)) return denied(request.uid, would);
  const got = would.addresses.map(({ address }) => address);
  const macs = withMacs(annotations, parseMacs(formatAddresses(got, would.interfaces)));
  if (macs.other.length > 0) return denied(request.uid, otherMac(macs.other));
  return allowed(request.uid, [
    describeDryRun("this pod", would),
    ...fallenBack(namedIn(podAllocation, would.claim).addresses, got),
    ...(await warningsOfNodes(admission, request, nodesFor(podAllocation), got)),
    ...warnings,
    ...warningsOfUnwritten(macs.unwritten),
  ]);
}

interface Admitted {
  readonly pod: KubeObject;
  readonly podAllocation: PodAllocation;
  readonly warnings: readonly string[];
  /** Aborted once the API server has given up, or was told that the review took too long: the pod is refused in any case. */
  readonly signal: AbortSignal;
}

async function admit(
  admission: AdmissionContext,
  request: AdmissionRequest,
  { pod, podAllocation, warnings, signal }: Admitted,
): Promise<AdmissionResponse> {
  const got = await reserveFor(admission, pod.metadata.namespace, podAllocation);
  if (isRefusal(got)) return denied(request.uid, got);
  const { record } = got.claim;
  const token = tokenFor(record, podAllocation);
  if (isRefusal(token)) return denied(request.uid, token);
  const { annotations } = pod.metadata;
  const named = namedIn(podAllocation, record.name);
  const ips =
    named.addresses.length === 0 ? {} : withGivenIps(annotations, named, parseAddresses(got.assigned));
  const macs = withMacs({ ...annotations, ...ips }, parseMacs(got.assigned));
  if (macs.other.length > 0) return denied(request.uid, otherMac(macs.other));
  const assigned = {
    ...ips,
    ...macs.annotations,
    [ASSIGNED_CLAIM]: record.name,
    [ASSIGNED_ADDRESSES]: got.assigned.join(","),
    ...(token === "" ? {} : { [ASSIGNED_TOKEN]: token }),
  };
  // what a person made outlives pods and workloads
  const ownWarnings = record.handMade === true ? [] : warnings;
  const besides = {
    nodes: nodesOf(admission, got.addresses),
    warnings: [
      ...fallenBack(named.addresses, got.addresses),
      ...(await warningsOfNodes(admission, request, nodesFor(podAllocation), got.addresses)),
      ...ownWarnings,
      ...warningsOfUnwritten(macs.unwritten),
    ],
  };
  const written = { ...assigned, ...reviewed(admission, podAllocation, { annotations, assigned }) };
  if (signal.aborted && podAllocation.kind === "anySlot") await giveHoldBack(admission.context, got.claim);
  return answer(request, pod, written, besides);
}

/**
 * With it the API server does not ask a second time as long as nobody has changed the request, or what it was given. Not for a pod that
 * asks for nothing itself and has what its claim had: the second review looks whether that is so still. On one host the second review is
 * where the pod comes to be.
 */
function reviewed(
  { embedded }: AdmissionContext,
  { requests: [{ followsClaim }] }: PodAllocation,
  { annotations, assigned }: { readonly annotations: Labels; readonly assigned: Labels },
): Labels {
  const isSettled = embedded === undefined && followsClaim !== "any";
  const text = isSettled ? reviewedRequest(annotations, assigned) : undefined;
  return text === undefined ? {} : { [REVIEWED_REQUEST]: text };
}

/** The addresses that the pod asked for, where others will do as well; of a set, those of the slot that it got. */
function namedIn({ requests }: PodAllocation, claim: string): OfPod {
  const its = requests.find(({ key }) => key.name === claim)?.constraints;
  if (its?.fallback === undefined) return { addresses: [] };
  return { addresses: its.addresses ?? [], interfaces: its.interfaces };
}

/** Where the pod may run, whichever of its requests is met. */
function nodesFor({ requests: [one] }: PodAllocation): PodNodes | undefined {
  return one?.constraints.nodes;
}

/** The token of this review's own hold. That of another pod's is told to nobody: whoever has it may have the claim. */
function tokenFor(claim: Claim, { requests }: PodAllocation): string | Refusal {
  const { node = "", token = "" } = claim.binding ?? {};
  if (node !== "" || token === "") return "";
  return token === requests[0]?.hold?.token ? token : isHeldForAnother(claim);
}

/**
 * Whatever would be written counts among the pending claims: a claim, a hold, an address more for a claim. For a claim that has all that
 * is asked for nothing is written.
 */
async function reserveFor(
  { context, inventory, pendingClaims }: AdmissionContext,
  namespace: string,
  { kind, requests }: PodAllocation,
): Promise<Reserved | Refusal> {
  const make = () =>
    kind === "own" ? reserve(context, requests[0], "nothing") : allocateSlot(context, inventory, requests);
  const hasAll = kind === "own" && isSatisfied(context, requests[0]);
  return pendingClaims === undefined || hasAll ? await make() : await pendingClaims.during(namespace, make);
}
