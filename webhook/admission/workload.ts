// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Address } from "../../allocator/address.ts";
import { DIALECTS } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal } from "../../allocator/errors.ts";
import { slotIntents, tooShort } from "../../allocator/intent.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { describePreview, preview } from "../../allocator/preview.ts";
import { release } from "../../allocator/release.ts";
import { asksForAddress } from "../../allocator/request.ts";
import { type Intent, type Reserved, reserve } from "../../allocator/reserve.ts";
import {
  MOST_ORDINALS,
  ordinalIntents,
  ownerOf,
  readTemplate,
  type Template,
} from "../../allocator/template.ts";
import { type Desk, expectKind, type Keeper, namespaceOf, objectOf } from "./desk.ts";
import { withAccess } from "./pool-access.ts";
import { type AdmissionRequest, type AdmissionResponse, allowed, denied, type Handler } from "./review.ts";
import { enoughFor } from "./rollout.ts";

const KINDS = ["StatefulSet", "Deployment", "CloneSet"];

/**
 * `/validate/workloads`: refuses early what its pods would be refused for later. On the embedded stack the ordinals
 * of a StatefulSet are reserved there and then, all or none.
 */
export function validateWorkloads(desk: Desk): Handler {
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    if (request.operation === "DELETE") return await workloadGone(desk, request);
    const object = objectOf(request, "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, KINDS);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const namespace = await namespaceOf(desk.inventory, object.metadata.namespace);
    const template = readTemplate(desk.context, object, namespace);
    if (isRefusal(template)) return denied(request.uid, template);
    const told = isSameSpec(desk, request, object)
      ? []
      : await considerAndKeep(desk, request, object, template);
    if (isRefusal(told)) return denied(request.uid, told);
    return allowed(request.uid, [...misplaced(object), ...told]);
  };
}

/** In a cluster nothing new is asked for; an owner must be able to label what could not be made today. */
function isSameSpec(desk: Desk, request: AdmissionRequest, object: KubeObject): boolean {
  if (desk.embedded !== undefined || request.operation !== "UPDATE") return false;
  const before = objectOf(request, "oldObject");
  return !isRefusal(before) && isDeepStrictEqual(before.spec.value, object.spec.value);
}

async function considerAndKeep(
  desk: Desk,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const keeper = desk.embedded;
  if (keeper === undefined || request.dryRun) return await consider(desk, request, object, template);
  const reviewed = keeper.expect?.(object);
  try {
    const told = await consider(desk, request, object, template);
    if (isRefusal(told)) return told;
    await keeper.keep(object);
    suspectAll(desk, object);
    return told;
  } finally {
    reviewed?.();
  }
}

function suspectAll(desk: Desk, object: KubeObject): void {
  for (const { record } of desk.context.view.claims()) {
    const { identity, namespace } = record;
    const its = identity.kind === object.kind && identity.name === object.metadata.name;
    if (its && namespace === object.metadata.namespace) desk.suspect(record);
  }
}

/** On the object an annotation does nothing; that it belongs to the template is the commonest mistake of all. */
function misplaced(object: KubeObject): string[] {
  const template = object.spec.at("template").at("metadata").texts("annotations");
  return DIALECTS.map(({ key }) => key)
    .filter((key) => object.metadata.annotations[key] !== undefined && template[key] === undefined)
    .map(
      (key) =>
        `annotation ${key} on the ${object.kind} itself has no effect; move it to spec.template.metadata.annotations`,
    );
}

/** Warnings, or why not. */
async function consider(
  desk: Desk,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  if (!asksForAddress(template.request) || template.exempt) return [];
  if (object.kind === "StatefulSet") return await considerOrdinals(desk, request, object, template);
  return await considerSet(desk, object, template);
}

async function considerOrdinals(
  desk: Desk,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const { workload } = template;
  const { entries } = template.request;
  if (entries !== undefined && entries.length < workload.replicas) {
    return tooShort(entries.length, workload.start + entries.length, workload.start);
  }
  if (workload.replicas > MOST_ORDINALS) {
    return [
      `addresses of more than ${MOST_ORDINALS} replicas are not reserved in advance; each pod reserves its own`,
    ];
  }
  const plain: Intent[] = [];
  for (const { intent } of ordinalIntents(object, template)) {
    if (isRefusal(intent)) return intent;
    plain.push(intent);
  }
  const intents = await permitted(desk, object, plain);
  // Looked at first, so that a refusal leaves claims that would have been changed as they are.
  const told = await previewAll(desk, intents, request.dryRun);
  if (!Array.isArray(told)) return about(told.intent, told.refusal);
  return desk.embedded === undefined || request.dryRun ? told : await reserveAll(desk, intents);
}

/**
 * All or none: what this review made is given back when one of them is refused, unless somebody has come to use it. A
 * pod of the set may be admitted at the same moment, by another replica: what that one made is not given back.
 */
async function reserveAll(desk: Desk, intents: readonly Intent[]): Promise<string[] | Refusal> {
  const made: Reserved[] = [];
  const warnings: string[] = [];
  for (const intent of intents) {
    const got = await reserve(desk.context, intent);
    if (isRefusal(got) && got.code === "CLAIM_CHANGED") {
      warnings.push(got.message);
    } else if (isRefusal(got)) {
      for (const { claim } of made) await release(desk.context, claim);
      return about(intent, got);
    } else if (got.made) {
      made.push(got);
    }
  }
  return warnings;
}

/**
 * Each after the ones before it, so that two do not count on one address. What the previews say is told if `tell`;
 * a claim in use that will change later is always worth a warning.
 */
async function previewAll(
  desk: Desk,
  intents: readonly Intent[],
  tell: boolean,
): Promise<string[] | { readonly refusal: Refusal; readonly intent: Intent }> {
  const told: string[] = [];
  const spoken = new Set<Address>();
  for (const intent of intents) {
    const would = await preview(desk.context, intent, spoken);
    if (isRefusal(would) && would.code === "CLAIM_CHANGED") {
      told.push(would.message);
      continue;
    }
    if (isRefusal(would)) return { refusal: would, intent };
    for (const { address } of would.addresses) spoken.add(address);
    if (tell) told.push(describePreview(intent.key.name, would));
  }
  return told;
}

function about(intent: Intent, refusal: Refusal): Refusal {
  return { ...refusal, message: `pod ${intent.key.name}: ${refusal.message}` };
}

/** With the pools that the service account of the template may use. */
async function permitted(
  desk: Desk,
  object: KubeObject,
  intents: readonly Intent[],
): Promise<readonly Intent[]> {
  const podSpec = object.spec.at("template").at("spec");
  return await withAccess(desk, object.metadata.namespace, podSpec, intents);
}

/** A set must be as long as the pods that live at once, or a rolling update waits for ever. */
async function considerSet(desk: Desk, object: KubeObject, template: Template): Promise<string[] | Refusal> {
  const { workload, applicant } = template;
  const { entries } = template.request;
  if (entries === undefined) {
    return template.request.sticky === true
      ? [
          `berth.dev/sticky has no effect on the pods of a ${object.kind}, which have no identity; give it a set with berth.dev/ips`,
        ]
      : [];
  }
  const identity = ownerOf(object);
  const plain = slotIntents(applicant({ kind: "set", workload: identity.name, identity }), identity.name);
  const slots = await permitted(desk, object, plain);
  const told = await previewAll(desk, slots, false);
  if (!Array.isArray(told)) return told.refusal;
  const enough = enoughFor(object, workload.replicas, entries.length);
  return isRefusal(enough) ? enough : [...told, ...enough];
}

async function workloadGone(desk: Desk, request: AdmissionRequest): Promise<AdmissionResponse> {
  if (request.dryRun || desk.embedded === undefined) return allowed(request.uid);
  const old = objectOf(request, "oldObject");
  if (isRefusal(old)) return denied(request.uid, old);
  await forget(desk, desk.embedded, old);
  return allowed(request.uid);
}

async function forget(desk: Desk, keeper: Keeper, object: KubeObject): Promise<void> {
  await keeper.forget(object.kind, object.metadata.namespace, object.metadata.name);
  suspectAll(desk, object);
}
