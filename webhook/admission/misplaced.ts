// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { requestKeysIn } from "../../allocator/manifest/annotations.ts";
import { isReadWith } from "../../allocator/manifest/dialects.ts";
import { foreignKeys } from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { unknownKey } from "../../allocator/manifest/own-keys.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { warningsOfLabels } from "./stray-labels.ts";

/** On the object an annotation does nothing; that it belongs to the template is the commonest mistake of all. */
export function misplaced(admission: AdmissionContext, object: KubeObject): string[] {
  const place = `${templateOf(object)}.metadata.annotations`;
  const labels = warningsOfLabels(admission.context.view, object.metadata.labels, place);
  return [
    ...withoutEffect(admission, object, object.metadata.annotations, `the ${object.kind} itself`),
    ...foreignOnObject(admission, object, place),
    ...labels,
    ...unknownOf(object.metadata.annotations),
    ...onJobTemplate(admission, object),
  ];
}

function withoutEffect(
  { dialects }: AdmissionContext,
  object: KubeObject,
  own: Labels,
  where: string,
): string[] {
  const template = templateAnnotations(object);
  const isRead = isReadWith(dialects);
  const place = `${templateOf(object)}.metadata.annotations`;
  return requestKeysIn(own)
    .filter((key) => isRead(key) && template[key] !== own[key])
    .map((key) => {
      const next = template[key] === undefined ? `move it to ${place}` : `another value stands in ${place}`;
      return `annotation ${key} on ${where} has no effect; ${next}`;
    });
}

function unknownOf(own: Labels): string[] {
  const unknown = unknownKey("Pod", own);
  return unknown === undefined ? [] : [unknown.message];
}

/** What a CronJob writes on its Jobs, which give their pods what stands in their own template alone. */
function onJobTemplate(admission: AdmissionContext, object: KubeObject): string[] {
  if (object.kind !== "CronJob") return [];
  const own = object.spec.at("jobTemplate").at("metadata").texts("annotations");
  const where = "spec.jobTemplate.metadata";
  const place = `${templateOf(object)}.metadata.annotations`;
  const unknown = unknownOf(own).map(
    (words) => `${words} (on ${where}, where it has no effect; move it to ${place})`,
  );
  return [...withoutEffect(admission, object, own, where), ...unknown];
}

function templateOf({ kind }: KubeObject): string {
  return kind === "CronJob" ? "spec.jobTemplate.spec.template" : "spec.template";
}

/** What stands on a workload itself and asks another system, which looks at pods. */
function foreignOnObject(
  { dialects, foreignRequests: choice = "warn" }: AdmissionContext,
  object: KubeObject,
  place: string,
): string[] {
  if (choice === "ignore") return [];
  const template = templateAnnotations(object);
  return foreignKeys(object.metadata.annotations, dialects)
    .filter(({ key }) => template[key] !== object.metadata.annotations[key])
    .map(
      ({ key, system }) =>
        `annotation ${key} on the ${object.kind} itself is nothing to berth, and ${system} looks at pods; what they ask for stands in ${place}`,
    );
}
