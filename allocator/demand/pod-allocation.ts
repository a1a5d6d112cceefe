// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import { readClaim } from "../cache/reader.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { nameConflict } from "../lifecycle/claim-conflicts.ts";
import { isKeptForOwner } from "../lifecycle/claim-owner.ts";
import { EXEMPT_NAMESPACE, readRequest } from "../manifest/annotations.ts";
import { type Fields, type KubeObject, podMetadata } from "../manifest/kubernetes-object.ts";
import { networkAttachments, networksObjection } from "../manifest/network-attachments.ts";
import { speaksForName } from "../manifest/pod-claim.ts";
import { nodeTermsOf } from "../manifest/pod-nodes.ts";
import { requestsAddress } from "../model/address-request.ts";
import { type Claim, claimKey, isReserved } from "../model/claim.ts";
import type { ClusterState, NamespaceState, WorkloadState } from "../model/cluster-state.ts";
import { identityOf, type PodIdentity, type PodMetadata } from "../model/identity.ts";
import type { PodNodes } from "../model/node-terms.ts";
import type { Networks } from "../planning/plan.ts";
import { type DryRunResult, dryRun } from "./allocation-dry-run.ts";
import { type AllocationInput, requestFor, requestForClaim, slotRequests } from "./build-request.ts";
import { ownAnnotations } from "./foreign-pools.ts";
import { dryRunSlot } from "./slots.ts";

/** On pods that kubelet made from a file: the API server refuses any change of theirs. */
export const MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror";

/** One claim for the pod alone, or any of those that pods like it take over from each other. */
export type PodAllocation =
  | { readonly kind: "own"; readonly requests: readonly [AllocationRequest] }
  | { readonly kind: "anySlot"; readonly requests: readonly AllocationRequest[] };

/** Pods that have no network of their own, or that no webhook may touch. */
export function isExempt(pod: KubeObject): boolean {
  return (
    pod.spec.flag("hostNetwork") ||
    Object.hasOwn(pod.metadata.annotations, MIRROR_POD_ANNOTATION) ||
    pod.metadata.namespace === EXEMPT_NAMESPACE
  );
}

type PodContext = Pick<Context, "view" | "clock" | "random" | "dialects">;

/** Everything that decides about the pod: what it says itself, what its namespace says, and whose it is. */
export async function readPod(
  context: PodContext,
  inventory: Pick<ClusterState, "workload" | "nodes">,
  pod: KubeObject,
  namespace: NamespaceState,
): Promise<AllocationInput | Refusal> {
  const input = await readPodAs(context, inventory, podMetadata(pod, namespace.name), namespace);
  if (isRefusal(input)) return input;
  const networks = networksAsked(pod.metadata.annotations, namespace.name);
  if (isRefusal(networks)) return networks;
  return { ...input, networks, ...nodesAsked(pod.spec, inventory) };
}

/** That of the cluster is not known here: the pod may be attached to others. */
export function networksAsked(annotations: Labels, namespace: string): Networks | Refusal {
  const objection = networksObjection(annotations);
  if (objection !== undefined) return objection;
  const attachments = networkAttachments(annotations, namespace);
  const on = Object.fromEntries(attachments.map((one) => [one.interface, [one.network]]));
  return { names: attachments.map(({ network }) => network), isAll: false, on };
}

/** Where a pod of this spec may run, among the nodes that are known; nothing, if it may run anywhere and none are. */
export function nodesAsked(
  spec: Fields,
  { nodes }: Pick<ClusterState, "nodes">,
): { readonly nodes?: PodNodes } {
  const terms = nodeTermsOf(spec);
  if (terms === undefined && nodes === undefined) return {};
  return { nodes: { ...(terms && { terms }), ...(nodes && { known: nodes }) } };
}

/** What is left to another system is taken out here, whoever reads the pod: at its admission, and when it is seen and bound. */
export async function readPodAs(
  context: PodContext,
  inventory: Pick<ClusterState, "workload">,
  pod: PodMetadata,
  space: NamespaceState,
): Promise<AllocationInput | Refusal> {
  const { annotations, namespace } = ownAnnotations(context.view, pod.annotations, space, context.dialects);
  const request = readRequest(annotations, namespace, "macs");
  if (isRefusal(request)) return request;
  const podIdentity = identityOf(pod);
  const workload = await workloadFor(inventory, podIdentity, namespace.name);
  return {
    podIdentity: withUid(podIdentity, workload?.uid),
    request,
    namespace,
    podLabels: pod.labels,
    start: podIdentity.identity.kind === "StatefulSet" ? (workload?.start ?? 0) : 0,
    token: context.random.token(),
    now: context.clock.now(),
    isKeptForOwner: (claim) => isKeptForOwner(claim, podIdentity.identity, inventory),
  };
}

/** Undefined: the workload does not exist or is not tracked. */
export async function workloadFor(
  inventory: Pick<ClusterState, "workload">,
  { identity }: PodIdentity,
  namespace: string,
): Promise<WorkloadState | undefined> {
  const { apiVersion, kind, name } = identity;
  if (kind !== "StatefulSet" && kind !== "Deployment") return undefined;
  const workload = await inventory.workload({ apiVersion, kind, namespace, name });
  return typeof workload === "string" ? undefined : workload;
}

/** Of a Deployment, of which its pods say the name alone. */
function withUid(podIdentity: PodIdentity, uid = ""): PodIdentity {
  if (uid === "" || podIdentity.identity.uid !== undefined) return podIdentity;
  return { ...podIdentity, identity: { ...podIdentity.identity, uid } };
}

/** What the pod is to be given; undefined when it asks for nothing and no claim waits for it. */
export async function resolvePod(
  context: Pick<Context, "view" | "store">,
  input: AllocationInput,
): Promise<PodAllocation | Refusal | undefined> {
  const { podIdentity, request } = input;
  if (!requestsAddress(request)) {
    const waiting = await waitingClaim(context, input);
    if (waiting === undefined) return undefined;
    return only(podIdentity, { ...requestForClaim(input, waiting), followsClaim: "any" });
  }
  return allocationFor(input);
}

/** The same of one that asks itself. */
export function allocationFor(input: AllocationInput): PodAllocation | Refusal {
  const { podIdentity, request } = input;
  const workload = sharedSetOwner(podIdentity);
  if (workload !== undefined && request.entries !== undefined) {
    return { kind: "anySlot", requests: slotRequests(input, workload) };
  }
  const allocation = requestFor(input);
  return isRefusal(allocation) ? allocation : only(podIdentity, allocation);
}

/** A Job's next pod, or a machine's, takes over from the last one as the next pod of a set does. */
function only(podIdentity: PodIdentity, allocation: AllocationRequest): PodAllocation {
  const takesOver = podIdentity.kind === "named" && podIdentity.byToken === true;
  return { kind: takesOver ? "anySlot" : "own", requests: [allocation] };
}

/** Whose pods share a list of addresses: a name such as CloneSets give does not say which entry is the pod's. */
function sharedSetOwner(podIdentity: PodIdentity): string | undefined {
  if (podIdentity.kind === "set") return podIdentity.workload;
  return podIdentity.identity.kind === "CloneSet" ? podIdentity.identity.name : undefined;
}

/**
 * A claim of the pod's name, made by hand or had by a pod by itself before, speaks for a pod that asks for nothing. It may have
 * been made a moment ago, and a pod that missed it would start with another address.
 */
async function waitingClaim(
  context: Pick<Context, "view" | "store">,
  { podIdentity, namespace }: AllocationInput,
): Promise<Claim | undefined> {
  if (podIdentity.kind !== "named") return undefined;
  const key = claimKey({ namespace: namespace.name, name: podIdentity.claim });
  const claim = (await readClaim(context, key))?.record;
  if (claim === undefined || claim.releasing === true) return undefined;
  if (!speaksForName(claim)) return undefined;
  if (nameConflict(claim, podIdentity.identity)) return undefined;
  return claim.handMade === true || isReserved(claim) ? claim : undefined;
}

/** What would come of the request now; writes nothing. */
export async function dryRunPod(
  context: Context,
  inventory: ClusterState,
  { kind, requests }: PodAllocation,
): Promise<DryRunResult | Refusal> {
  return kind === "own" ? await dryRun(context, requests[0]) : await dryRunSlot(context, inventory, requests);
}
