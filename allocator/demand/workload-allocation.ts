// SPDX-License-Identifier: Apache-2.0
// What a workload's template asks for, and the request of each ordinal of a StatefulSet.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Context } from "../cache/context.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { EXEMPT_NAMESPACE, readRequest } from "../manifest/annotations.ts";
import { type Fields, type KubeObject, workloadState } from "../manifest/kubernetes-object.ts";
import type { Request } from "../model/address-request.ts";
import type { Identity } from "../model/claim.ts";
import type { ClusterState, NamespaceState, WorkloadState } from "../model/cluster-state.ts";
import type { PodIdentity } from "../model/identity.ts";
import { ordinalsOf } from "../model/ordinals.ts";
import { type AllocationInput, requestFor } from "./build-request.ts";
import { networksAsked, nodesAsked } from "./pod-allocation.ts";

/** The most ordinals that are looked at in advance; each pod beyond them reserves for itself. */
export const MAX_PRERESERVED_ORDINALS = 1000;

/** What a workload's template asks for, and how its pods will stand. */
export interface Template {
  readonly workload: WorkloadState;
  readonly request: Request;
  /** Its pods are let through untouched, so nothing may be reserved for them. */
  readonly exempt: boolean;
  readonly inputOf: (podIdentity: PodIdentity) => AllocationInput;
}

/** `annotations`: those of the template that Berth answers, if not all of them. */
export function readTemplate(
  context: Pick<Context, "clock" | "random"> & Pick<ClusterState, "nodes">,
  object: KubeObject,
  namespace: NamespaceState,
  annotations: Labels = templateAnnotations(object),
): Template | Refusal {
  const template = podTemplate(object);
  const meta = template.at("metadata");
  const request = readRequest(annotations, namespace, "macs");
  if (isRefusal(request)) return request;
  const networks = networksAsked(meta.texts("annotations"), namespace.name);
  if (isRefusal(networks)) return networks;
  const nodes = nodesAsked(template.at("spec"), context);
  const podLabels = meta.texts("labels");
  const workload = workloadState(object);
  return {
    workload,
    request,
    exempt: template.at("spec").flag("hostNetwork") || namespace.name === EXEMPT_NAMESPACE,
    inputOf: (podIdentity) => ({
      podIdentity,
      request,
      namespace,
      podLabels,
      networks,
      ...nodes,
      start: workload.start,
      token: context.random.token(),
      now: context.clock.now(),
    }),
  };
}

export function templateAnnotations(object: KubeObject): Labels {
  return podTemplate(object).at("metadata").texts("annotations");
}

export function templateLabels(object: KubeObject): Labels {
  return podTemplate(object).at("metadata").texts("labels");
}

/** Of its pods: of a CronJob, those of its Jobs. */
export function podTemplate(object: KubeObject): Fields {
  return (object.kind === "CronJob" ? jobSpec(object) : object.spec).at("template");
}

/** What its pods are made by: of a CronJob, that of its Jobs. */
export function jobSpec({ kind, spec }: KubeObject): Fields {
  return kind === "CronJob" ? spec.at("jobTemplate").at("spec") : spec;
}

/** The last index of a Job whose pods have one each, or of the Jobs of a CronJob. */
export function lastIndexOf(object: KubeObject): number | undefined {
  if (!isJob(object)) return undefined;
  const spec = jobSpec(object);
  const isIndexed = spec.text("completionMode") === "Indexed";
  return isIndexed ? Math.max(0, spec.count("completions", 1) - 1) : undefined;
}

export function isJob({ kind }: Pick<KubeObject, "kind">): boolean {
  return kind === "Job" || kind === "CronJob";
}

/** Who the workload's pods are, without an ordinal or slot. */
export function ownerOf(object: KubeObject): Identity {
  const { name, uid } = object.metadata;
  return { kind: object.kind, apiVersion: object.apiVersion, name, ...(uid === "" ? {} : { uid }) };
}

/** The claim's name and the request of an ordinal of a StatefulSet. */
export interface OrdinalRequest {
  readonly name: string;
  readonly ordinal: number;
  readonly allocation: AllocationRequest | Refusal;
}

/** Those of each ordinal: from `first` on to the last one, then those before it. */
export function* ordinalRequests(
  object: KubeObject,
  { workload, inputOf }: Template,
  first = workload.start,
): Generator<OrdinalRequest> {
  const owner = ownerOf(object);
  const replicas = Math.min(workload.replicas, MAX_PRERESERVED_ORDINALS);
  const ordinals = [...ordinalsOf({ ...workload, replicas })];
  const inOrder = [...ordinals.filter((one) => one >= first), ...ordinals.filter((one) => one < first)];
  for (const ordinal of inOrder) {
    const name = `${owner.name}-${ordinal}`;
    yield {
      name,
      ordinal,
      allocation: requestFor(inputOf({ kind: "named", claim: name, identity: { ...owner, ordinal } })),
    };
  }
}
