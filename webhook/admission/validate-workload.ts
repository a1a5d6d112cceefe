// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { idleFallback } from "../../allocator/demand/unkept-requests.ts";
import {
  isJob,
  readTemplate,
  type Template,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import { notesOn } from "../../allocator/manifest/dialects.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { isFollowed } from "../../allocator/model/workload-kinds.ts";
import { type AdmissionRequest, allowed, denied, type Handler } from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";
import { foreignInTemplate, judgeAside, ownOf } from "./foreign-review.ts";
import { considerAndKeep, workloadGone } from "./kept-workload.ts";
import { misplaced } from "./misplaced.ts";
import { warningsOfTemplateNodes } from "./nodeless-pools.ts";
import { warningsOfScale } from "./scale.ts";
import { warningsOfScaleDown } from "./scale-down.ts";
import { idleInTemplate, warningsOfMacs } from "./template-warnings.ts";
import { beforeOf, unknownInTemplate } from "./unknown-keys.ts";
import { considerUnread } from "./unread-workload.ts";
import { warningsOfWithdrawal } from "./withdrawn-request.ts";
import { isNew, isSameSpec } from "./workload-change.ts";

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
