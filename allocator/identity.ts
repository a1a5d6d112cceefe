// SPDX-License-Identifier: Apache-2.0
import type { Identity } from "./claim.ts";
import type { Labels } from "./ports.ts";

/** What of a pod says whose it is. At a mutating CREATE the uid is empty and a generateName pod has no name. */
export interface PodOrigin {
  readonly namespace: string;
  readonly name: string;
  readonly generateName: string;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly owner?: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  };
}

/**
 * - `named`: the pod's name says which claim is its own; asking again finds the same one.
 * - `set`: one of a Deployment's pods, which share a set of addresses and take any free slot of it.
 * - `anonymous`: nothing tells this pod from the next one; its claim is found again by a token.
 */
export type PodStanding =
  | {
      readonly kind: "named";
      readonly claim: string;
      readonly identity: Identity;
      /** The pod is called otherwise than its claim, and is found again by its token. */
      readonly byToken?: true;
    }
  | { readonly kind: "set"; readonly workload: string; readonly identity: Identity }
  | { readonly kind: "anonymous"; readonly identity: Identity };

const INDEX_LABEL = "apps.kubernetes.io/pod-index";
const HASH_LABEL = "pod-template-hash";
const COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";
/** What of a pod's labels and annotations `standingOf` reads. */
export const STANDING_LABELS: readonly string[] = [INDEX_LABEL, HASH_LABEL, COMPLETION_INDEX];
export const STANDING_ANNOTATIONS: readonly string[] = [COMPLETION_INDEX];

/** Whose the pod is, from the pod alone: admission has no time to look owners up. */
export function standingOf(pod: PodOrigin): PodStanding {
  const owner = pod.owner;
  if (owner === undefined) return ofBarePod(pod);
  const base = { apiVersion: owner.apiVersion, uid: owner.uid };
  switch (owner.kind) {
    case "StatefulSet": {
      const ordinal = ordinalOf(pod, owner.name);
      if (ordinal === undefined || pod.name === "") break;
      return {
        kind: "named",
        claim: pod.name,
        identity: { ...base, kind: "StatefulSet", name: owner.name, ordinal },
      };
    }
    case "CloneSet":
      if (pod.name === "") break;
      return { kind: "named", claim: pod.name, identity: { ...base, kind: "CloneSet", name: owner.name } };
    case "Job": {
      const index = toIndex(pod.annotations[COMPLETION_INDEX] ?? pod.labels[COMPLETION_INDEX]);
      if (index === undefined) break;
      const identity = { ...base, kind: "Job", name: owner.name, ordinal: index };
      return { kind: "named", claim: `${owner.name}-${index}`, identity, byToken: true };
    }
    case "VirtualMachineInstance":
      return {
        kind: "named",
        claim: owner.name,
        identity: { ...base, kind: "VirtualMachineInstance", name: owner.name },
        byToken: true,
      };
    case "ReplicaSet": {
      const workload = deploymentOf(owner.name, pod.labels[HASH_LABEL]);
      const identity = { kind: "Deployment", apiVersion: "apps/v1", name: workload };
      return { kind: "set", workload, identity };
    }
    default:
      break;
  }
  return ofBarePod({ ...pod, name: "" });
}

function ofBarePod(pod: PodOrigin): PodStanding {
  const identity = { kind: "Pod", apiVersion: "v1", name: pod.name === "" ? pod.generateName : pod.name };
  return pod.name === "" ? { kind: "anonymous", identity } : { kind: "named", claim: pod.name, identity };
}

function ordinalOf(pod: PodOrigin, set: string): number | undefined {
  const suffix = pod.name.startsWith(`${set}-`) ? pod.name.slice(set.length + 1) : undefined;
  return toIndex(suffix) ?? toIndex(pod.labels[INDEX_LABEL]);
}

function toIndex(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** A ReplicaSet made by a Deployment is named <deployment>-<hash of its template>. */
function deploymentOf(replicaSet: string, hash: string | undefined): string {
  const suffix = `-${hash ?? ""}`;
  return hash !== undefined && replicaSet.endsWith(suffix) ? replicaSet.slice(0, -suffix.length) : replicaSet;
}

/** Kinds whose claims are called like their pods, of which one at a time can have the name, whoever owns it. */
const NAMED_LIKE_PODS: ReadonlySet<string> = new Set(["Pod", "StatefulSet", "CloneSet"]);

/**
 * Whether a claim may pass from one identity to another whose claim has the same name. Slots, machines and indexes
 * of Jobs have names of their own making, and a pod that happens to be called so must not walk away with one.
 */
export function mayFollow(before: Identity, next: Identity): boolean {
  if (before.slot !== next.slot) return false;
  if (before.kind === next.kind && before.name === next.name) return true;
  return NAMED_LIKE_PODS.has(before.kind) && NAMED_LIKE_PODS.has(next.kind) && before.slot === undefined;
}

/** The claim of one slot of a Deployment's set. */
export function slotName(workload: string, slot: number): string {
  return `${workload}-slot-${slot}`;
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
