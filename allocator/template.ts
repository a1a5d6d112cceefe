// SPDX-License-Identifier: Apache-2.0

import type { Identity } from "./claim.ts";
import type { Context } from "./context.ts";
import { EXEMPT_NAMESPACE, readRequest, withDefaults } from "./dialects.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import type { PodStanding } from "./identity.ts";
import { type Applicant, intentOf } from "./intent.ts";
import type { NamespaceFacts, WorkloadFacts } from "./inventory.ts";
import { type KubeObject, workloadFacts } from "./kube-object.ts";
import type { Request } from "./request.ts";
import type { Intent } from "./reserve.ts";

/** The most ordinals that are looked at in advance; each pod beyond them reserves for itself. */
export const MOST_ORDINALS = 1000;

/** What a workload's template asks for, and how its pods will stand. */
export interface Template {
  readonly workload: WorkloadFacts;
  readonly request: Request;
  /** Its pods are let through untouched, so nothing may be reserved for them. */
  readonly exempt: boolean;
  readonly applicant: (standing: PodStanding) => Applicant;
}

export function readTemplate(
  context: Pick<Context, "clock" | "random">,
  object: KubeObject,
  namespace: NamespaceFacts,
): Template | Refusal {
  const template = object.spec.at("template");
  const meta = template.at("metadata");
  const request = readRequest(withDefaults(meta.texts("annotations"), namespace));
  if (isRefusal(request)) return request;
  const workload = workloadFacts(object);
  return {
    workload,
    request,
    exempt: template.at("spec").flag("hostNetwork") || namespace.name === EXEMPT_NAMESPACE,
    applicant: (standing) => ({
      standing,
      request,
      namespace,
      podLabels: meta.texts("labels"),
      start: workload.start,
      token: context.random.token(),
      now: context.clock.now(),
    }),
  };
}

/** Who the workload's pods are, without an ordinal or slot. */
export function ownerOf(object: KubeObject): Identity {
  const { name, uid } = object.metadata;
  return { kind: object.kind, apiVersion: object.apiVersion, name, ...(uid === "" ? {} : { uid }) };
}

/** The claim's name and the wish of each ordinal of a StatefulSet, from `ordinals.start` on. */
export function* ordinalIntents(
  object: KubeObject,
  { workload, applicant }: Template,
): Generator<{ readonly name: string; readonly ordinal: number; readonly intent: Intent | Refusal }> {
  const owner = ownerOf(object);
  const end = workload.start + Math.min(workload.replicas, MOST_ORDINALS);
  for (let ordinal = workload.start; ordinal < end; ordinal++) {
    const name = `${owner.name}-${ordinal}`;
    yield {
      name,
      ordinal,
      intent: intentOf(applicant({ kind: "named", claim: name, identity: { ...owner, ordinal } })),
    };
  }
}
