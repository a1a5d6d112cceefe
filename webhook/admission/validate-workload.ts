// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import { cappedTtl, idleFallback, notKept } from "../../allocator/demand/unkept-requests.ts";
import {
  isJob,
  ownerOf,
  readTemplate,
  type Template,
  templateAnnotations,
  templateLabels,
} from "../../allocator/demand/workload-allocation.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { notesOn } from "../../allocator/manifest/dialects.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { warningsOfUnwritten, withMacs } from "../../allocator/manifest/mac-annotations.ts";
import {
  idleRequests,
  requestsOfHost,
  requestsOfSystem,
  writtenByOthers,
} from "../../allocator/manifest/own-keys.ts";
import { warningsOfUnreadOrdinals } from "../../allocator/manifest/reserved-ordinals.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import { parseMacs } from "../../allocator/model/interface-macs.ts";
import { formatAddresses } from "../../allocator/model/interfaces.ts";
import { isFollowed } from "../../allocator/model/workload-kinds.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, type ObjectStore, objectOf } from "./admission-context.ts";
import { dryRunAllocations } from "./dry-run-allocations.ts";
import { foreignInTemplate, judgeAside, ownOf } from "./foreign-review.ts";
import { misplaced } from "./misplaced.ts";
import { warningsOfTemplateNodes } from "./nodeless-pools.ts";
import { considerOrdinals, takeOverOrdinals } from "./ordinal-claims.ts";
import { withPoolsOfTemplate } from "./pool-access.ts";
import { checkRollout, unheldEntries } from "./rollout.ts";
import { warningsOfScale } from "./scale.ts";
import { warningsOfScaleDown } from "./scale-down.ts";
import { warningsOfLabels } from "./stray-labels.ts";
import { judgePools } from "./template-pools.ts";
import { beforeOf, unknownInTemplate } from "./unknown-keys.ts";
import { considerUnread } from "./unread-workload.ts";
import { warningsOfWithdrawal } from "./withdrawn-request.ts";

const KINDS = [
  "StatefulSet",
  "Deployment",
  "CloneSet",
  "DaemonSet",
  "ReplicaSet",
  "ReplicationController",
  "Rollout",
  "VirtualMachine",
  "Job",
  "CronJob",
];

/**
 * `/validate/workloads`: refuses early what its pods would be refused for later. On the embedded stack the ordinals
 * of a StatefulSet are reserved there and then, all or none.
 */
export function validateWorkloads(admission: AdmissionContext): Handler {
  return async (request) => {
    if (request.subResource === "scale")
      return allowed(request.uid, await warningsOfScale(admission, request));
    if (request.subResource !== "") return allowed(request.uid);
    if (request.operation === "DELETE") return await workloadGone(admission, request);
    const object = objectOf(request, "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, KINDS);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const warnings = await judgeWorkload(admission, request, object);
    if (isRefusal(warnings)) return denied(request.uid, warnings);
    return allowed(request.uid, [...misplaced(admission, object), ...warnings]);
  };
}

async function judgeWorkload(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<readonly string[] | Refusal> {
  const space = await namespaceOf(admission.inventory, object.metadata.namespace);
  const { annotations, namespace, left } = await ownOf(admission, templateAnnotations(object), space);
  const { nodes } = admission.inventory;
  const template = readTemplate({ ...admission.context, nodes }, object, namespace, annotations);
  if (isRefusal(template)) return template;
  const warnings = await judgeChange(admission, request, object, template);
  if (isRefusal(warnings)) return warnings;
  const isChange = isNew(request, object);
  const asked = {
    annotations: template.exempt ? {} : templateAnnotations(object),
    namespace: namespace.name,
  };
  const kept = new Set((template.request.entries ?? []).flat());
  const others = isChange ? judgeAside(admission, asked, left, kept) : [];
  if (isRefusal(others)) return others;
  const before = beforeOf(request);
  const { view } = admission.context;
  const isSet = object.kind === "StatefulSet" && before !== undefined;
  const lost = isSet ? warningsOfScaleDown(view, before, object) : [];
  const now = { object, space, template };
  const withdrawn = before === undefined ? [] : await warningsOfWithdrawal(admission, before, now, warnings);
  const fallback = requestsAddress(template.request) ? idleFallback(template.request) : [];
  const idle = isChange
    ? [
        ...idleInTemplate(admission, object, { template, own: annotations }),
        ...notesOn(annotations),
        ...fallback,
        ...warningsOfMacs(template, object),
      ]
    : [];
  const nodeless = await warningsOfTemplateNodes(admission, request, object, template);
  return [...withdrawn, ...warnings, ...nodeless, ...idle, ...others, ...lost];
}

/** Of what the first of its pods is to have by name: its runtime has to know, and nobody reads what its pods are told. */
function warningsOfMacs(
  { request: { entries: [entry] = [], interfaces } }: Template,
  object: KubeObject,
): readonly string[] {
  if (entry === undefined) return [];
  return warningsOfUnwritten(
    withMacs(templateAnnotations(object), parseMacs(formatAddresses(entry, interfaces))).unwritten,
  );
}

/** What Berth writes into pods asks for no address in a template either, nor on the object. */
function idleInTemplate(
  { context, dialects }: AdmissionContext,
  object: KubeObject,
  { template: { request, exempt }, own }: { readonly template: Template; readonly own: Labels },
): readonly string[] {
  const labels = warningsOfLabels(context.view, templateLabels(object));
  if (exempt && object.metadata.namespace === EXEMPT_NAMESPACE)
    return requestsOfSystem(templateAnnotations(object));
  if (exempt) return [...labels, ...requestsOfHost(templateAnnotations(object), dialects)];
  if (exempt || requestsAddress(request)) return labels;
  return [
    ...labels,
    ...idleRequests(own),
    ...writtenByOthers(templateAnnotations(object), "are removed from its pods"),
    ...writtenByOthers(object.metadata.annotations, `do nothing on a ${object.kind}`),
  ];
}

/** Asked for by this change, and not there before it. */
function isNew(request: AdmissionRequest, object: KubeObject): boolean {
  const before = beforeOf(request);
  return (
    before === undefined ||
    !isDeepStrictEqual(templateAnnotations(before), templateAnnotations(object)) ||
    !isDeepStrictEqual(templateLabels(before), templateLabels(object))
  );
}

/** The list, or how many pods it is for. */
function isNewSize(request: AdmissionRequest, object: KubeObject, replicas: number): boolean {
  return isNew(request, object) || beforeOf(request)?.spec.count("replicas", 1) !== replicas;
}

/** In a cluster nothing new is asked for; an owner must be able to label what could not be made today. */
function isSameSpec(admission: AdmissionContext, request: AdmissionRequest, object: KubeObject): boolean {
  if (admission.embedded !== undefined || request.operation !== "UPDATE") return false;
  const before = objectOf(request, "oldObject");
  return !isRefusal(before) && isDeepStrictEqual(before.spec.value, object.spec.value);
}

async function judgeChange(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  if (isSameSpec(admission, request, object)) return [];
  if (template.exempt) return await judgeSpec(admission, request, object, template);
  const foreign = foreignInTemplate(admission, request, object);
  const unknown = unknownInTemplate(request, object) ?? (isRefusal(foreign) ? foreign : undefined);
  const warnings = unknown ?? (await judgeSpec(admission, request, object, template));
  return isRefusal(warnings) || isRefusal(foreign) ? warnings : [...warnings, ...foreign];
}

async function judgeSpec(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  // the pods of a Job reserve for themselves
  return isFollowed(object.apiVersion, object.kind) && !isJob(object)
    ? await considerAndKeep(admission, request, object, template)
    : await considerUnread(admission, request, object, template);
}

async function considerAndKeep(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const objects = admission.embedded;
  if (objects === undefined || request.dryRun) return await consider(admission, request, object, template);
  const { apiVersion, kind, metadata } = object;
  const before = await admission.inventory.workload({ apiVersion, kind, ...metadata });
  const reviewed = objects.expect?.(object);
  try {
    const warnings = await consider(admission, request, object, template);
    if (isRefusal(warnings)) return warnings;
    await objects.keep(object);
    enqueueClaimsOf(admission, object);
    reviewed?.(); // what is kept counts from here
    // Claims that exist change by what is kept, and not by a review (ADR 0007).
    const changed = !isDeepStrictEqual(before, template.workload);
    return [...new Set([...warnings, ...(await takeOverOrdinals(admission, object, template, changed))])];
  } finally {
    reviewed?.();
  }
}

function enqueueClaimsOf(admission: AdmissionContext, object: KubeObject): void {
  const { kind, metadata } = object;
  for (const { record } of admission.context.view.claims({ kind, ...metadata })) {
    const { identity, namespace } = record;
    const its = identity.kind === kind && identity.name === metadata.name;
    if (its && namespace === metadata.namespace) admission.enqueueForGc(record);
  }
}

/** Warnings, or why not. */
async function consider(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  if (!requestsAddress(template.request) || template.exempt) return [];
  const isStatefulSet = object.kind === "StatefulSet";
  const warnings = isStatefulSet
    ? await considerOrdinals(admission, request, object, template)
    : await considerSet(admission, request, object, template);
  if (isRefusal(warnings)) return warnings;
  const owner = ownerOf(object);
  const podIdentity: PodIdentity = isStatefulSet
    ? { kind: "named", claim: `${owner.name}-0`, identity: { ...owner, ordinal: 0 } }
    : { kind: "set", workload: owner.name, identity: owner };
  const pods = { podIdentity, owner, request: template.request };
  return [
    ...warnings,
    ...(isStatefulSet ? [...notKept(pods), ...warningsOfUnreadOrdinals(object)] : []),
    ...cappedTtl(admission.context.view, pods),
  ];
}

/** A set must be as long as the pods that live at once, or a rolling update waits for ever. */
async function considerSet(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
  template: Template,
): Promise<string[] | Refusal> {
  const { workload, inputOf } = template;
  const { entries } = template.request;
  const identity = ownerOf(object);
  if (entries === undefined) {
    const podIdentity = { kind: "set", workload: identity.name, identity } as const;
    const one = requestFor(inputOf(podIdentity));
    const unserved = isRefusal(one) ? one : await judgePools(admission, request, object, [one]);
    if (isRefusal(unserved)) return unserved;
    return [...unserved, ...notKept({ podIdentity, owner: identity, request: template.request })];
  }
  const plain = slotRequests(inputOf({ kind: "set", workload: identity.name, identity }), identity.name);
  const slots = await withPoolsOfTemplate(admission, object, plain);
  const warnings = await dryRunAllocations(admission, object, slots, { includeResults: false });
  if (!Array.isArray(warnings)) return warnings.refusal;
  const enough = checkRollout(object, workload.replicas, entries.length);
  if (isRefusal(enough)) return enough;
  const podIdentity = { kind: "set", workload: identity.name, identity } as const;
  const spare = isNewSize(request, object, workload.replicas)
    ? unheldEntries(admission.context.view, entries, workload.replicas)
    : [];
  return [
    ...warnings,
    ...enough,
    ...spare,
    ...notKept({ podIdentity, owner: identity, request: template.request }),
  ];
}

async function workloadGone(
  admission: AdmissionContext,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  if (request.dryRun || admission.embedded === undefined) return allowed(request.uid);
  const old = objectOf(request, "oldObject");
  if (isRefusal(old)) return denied(request.uid, old);
  await forget(admission, admission.embedded, old);
  return allowed(request.uid);
}

async function forget(admission: AdmissionContext, objects: ObjectStore, object: KubeObject): Promise<void> {
  await objects.forget(object.kind, object.metadata.namespace, object.metadata.name);
  enqueueClaimsOf(admission, object);
}
