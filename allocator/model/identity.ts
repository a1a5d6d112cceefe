// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../base/ports.ts";
import type { Identity } from "./claim.ts";
import { ordinalInName, parseOrdinal } from "./ordinals.ts";
import { groupOf, isFollowed, isSameGroup } from "./workload-kinds.ts";

/** The controller of a pod, as the pod says. */
export interface PodOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** What of a pod says whose it is. At a mutating CREATE the uid is empty and a generateName pod has no name. */
export interface PodMetadata {
  readonly namespace: string;
  readonly name: string;
  readonly generateName: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly owner?: PodOwner;
}

/**
 * - `named`: the pod's name says which claim is its own; asking again finds the same one.
 * - `set`: one of a Deployment's pods, which share a set of addresses and take any free slot of it.
 * - `anonymous`: nothing tells this pod from the next one; its claim is found again by a token.
 */
export type PodIdentity =
  | {
      readonly kind: "named";
      readonly claim: string;
      readonly identity: Identity;
      /** The pod is called otherwise than its claim, and is found again by its token. */
      readonly byToken?: true;
      /** Which entry of a list is its own, where its identity has no ordinal: of a set that nobody reads. */
      readonly ordinal?: number;
    }
  | { readonly kind: "set"; readonly workload: string; readonly identity: Identity }
  | { readonly kind: "anonymous"; readonly identity: Identity };

const HASH_LABEL = "pod-template-hash";
/** On the pods and ReplicaSets of Argo Rollouts. */
const ROLLOUT_HASH_LABEL = "rollouts-pod-template-hash";
export const COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";
/** What of a pod's labels and annotations `identityOf` reads. */
export const IDENTITY_LABELS: readonly string[] = [HASH_LABEL, ROLLOUT_HASH_LABEL, COMPLETION_INDEX];
export const IDENTITY_ANNOTATIONS: readonly string[] = [COMPLETION_INDEX];

/** Whose the pod is, from the pod alone: admission has no time to look owners up. */
export function identityOf(pod: PodMetadata): PodIdentity {
  const owner = pod.owner;
  if (owner === undefined) return ofBarePod(pod);
  const base = { apiVersion: owner.apiVersion, uid: owner.uid };
  switch (`${owner.kind} ${groupOf(owner.apiVersion)}`) {
    case "CloneSet apps.kruise.io":
      if (pod.name === "") break;
      return { kind: "named", claim: pod.name, identity: { ...base, kind: "CloneSet", name: owner.name } };
    case "Job batch": {
      const index = parseOrdinal(pod.annotations[COMPLETION_INDEX] ?? pod.labels[COMPLETION_INDEX] ?? "");
      if (index === undefined) break;
      const identity = { ...base, kind: "Job", name: owner.name, ordinal: index };
      return { kind: "named", claim: `${owner.name}-${index}`, identity, byToken: true };
    }
    case "VirtualMachineInstance kubevirt.io":
      return {
        kind: "named",
        claim: owner.name,
        identity: { ...base, kind: "VirtualMachineInstance", name: owner.name },
        byToken: true,
      };
    case "ReplicaSet apps":
      return ofReplicaSet(pod, owner);
    default:
      if (owner.kind === "StatefulSet" && pod.name !== "") return ofStatefulSet(pod, owner);
      break;
  }
  return ofBarePod({ ...pod, name: "" });
}

/**
 * An ordinal is what the name says. A pod that is called otherwise is itself and no ordinal, as is one of a set that
 * nobody reads: of that only the pod can be seen.
 */
function ofStatefulSet(
  pod: PodMetadata,
  { apiVersion, uid, name }: Required<PodMetadata>["owner"],
): PodIdentity {
  const { workload, ordinal } = ordinalInName(pod.name) ?? {};
  if (ordinal === undefined || workload !== name) return ofBarePod(pod);
  if (!isFollowed(apiVersion, "StatefulSet"))
    return { kind: "named", claim: pod.name, identity: podIdentity(pod.name), ordinal };
  return {
    kind: "named",
    claim: pod.name,
    identity: { apiVersion, uid, kind: "StatefulSet", name, ordinal },
  };
}

/** One that was made from a template is named <owner>-<hash of the template>; any other is an owner by itself. */
function ofReplicaSet({ labels }: PodMetadata, owner: Required<PodMetadata>["owner"]): PodIdentity {
  const deployment = withoutHash(owner.name, labels[HASH_LABEL]);
  const rollout = withoutHash(owner.name, labels[ROLLOUT_HASH_LABEL]);
  const workload = deployment ?? rollout ?? owner.name;
  if (deployment !== undefined) {
    return { kind: "set", workload, identity: { kind: "Deployment", apiVersion: "apps/v1", name: workload } };
  }
  if (rollout !== undefined) {
    const identity = { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1", name: workload };
    return { kind: "set", workload, identity };
  }
  const { kind, apiVersion, name, uid } = owner;
  return { kind: "set", workload, identity: { kind, apiVersion, name, uid } };
}

function podIdentity(name: string): Identity {
  return { kind: "Pod", apiVersion: "v1", name };
}

function ofBarePod(pod: PodMetadata): PodIdentity {
  const identity = podIdentity(pod.name === "" ? pod.generateName : pod.name);
  return pod.name === "" ? { kind: "anonymous", identity } : { kind: "named", claim: pod.name, identity };
}

function withoutHash(replicaSet: string, hash = ""): string | undefined {
  const owner = replicaSet.slice(0, -hash.length - 1);
  return hash !== "" && owner !== "" && replicaSet === `${owner}-${hash}` ? owner : undefined;
}

/** Kinds whose claims are called like their pods, of which one at a time can have the name, whoever owns it. */
const NAMED_LIKE_PODS: ReadonlySet<string> = new Set(["Pod", "StatefulSet", "CloneSet"]);

/** Kinds whose pods are called otherwise than their claims: a pod that has the claim's name is none of theirs. */
const FOUND_BY_TOKEN: ReadonlySet<string> = new Set(["Job", "VirtualMachineInstance"]);

/** Whether a pod finds the claim of its own name, if it is one of this identity: not slots, indexes of Jobs and machines. */
export function isFoundByName({ kind, slot }: Identity): boolean {
  return slot === undefined && !FOUND_BY_TOKEN.has(kind);
}

/** Whether a claim of that name is of a pod that nothing tells from its like: it is called by its token, and by no pod's name. */
export function isAnonymous(claim: string, { kind, name }: Identity): boolean {
  return kind === "Pod" && name !== claim;
}

/**
 * Whether a claim may pass from one identity to another whose claim has the same name. Slots, machines and indexes
 * of Jobs have names of their own making, and a pod that happens to be called so must not walk away with one.
 */
export function canInherit(before: Identity, next: Identity): boolean {
  if (before.slot !== next.slot) return false;
  const isSameKind = before.kind === next.kind && isSameGroup(before.apiVersion, next.apiVersion);
  if (isSameKind && before.name === next.name) return true;
  return NAMED_LIKE_PODS.has(before.kind) && NAMED_LIKE_PODS.has(next.kind) && before.slot === undefined;
}

/** Whether both are of one object. A UID that is not known may be any. */
export function isSameUid(one = "", other = ""): boolean {
  return one === "" || other === "" || one === other;
}

/** The claim of one slot of a Deployment's set. */
export function slotName(workload: string, slot: number): string {
  return `${workload}-slot-${slot}`;
}

/** Which slot of which set has a claim of that name; undefined: none has. */
export function placeInSet(name: string): { readonly workload: string; readonly slot: number } | undefined {
  const [, workload = "", slot = ""] = /^(.+)-slot-(0|[1-9]\d{0,8})$/.exec(name) ?? [];
  return workload === "" ? undefined : { workload, slot: Number(slot) };
}

/** The identity in words: `StatefulSet mysql, ordinal 0`. */
export function describeIdentity(identity: Identity): string {
  const part =
    identity.slot !== undefined
      ? `, slot ${identity.slot}`
      : identity.ordinal !== undefined
        ? `, ordinal ${identity.ordinal}`
        : "";
  return `${identity.kind} ${identity.name}${part}`;
}
