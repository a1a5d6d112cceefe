// SPDX-License-Identifier: Apache-2.0

import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { ANNOTATION_FORMATS } from "../../allocator/manifest/annotations.ts";
import { isReadWith } from "../../allocator/manifest/dialects.ts";
import { foreignKeys } from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { unknownKey } from "../../allocator/manifest/own-keys.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { toldOfLabels } from "./stray-labels.ts";

/** On the object an annotation does nothing; that it belongs to the template is the commonest mistake of all. */
export function misplaced(admission: AdmissionContext, object: KubeObject): string[] {
  const own = object.metadata.annotations;
  const template = templateAnnotations(object);
  const unknown = unknownKey("Pod", own);
  const isRead = isReadWith(admission.dialects);
  const known = ANNOTATION_FORMATS.map(({ key }) => key)
    .filter((key) => isRead(key) && own[key] !== undefined && template[key] === undefined)
    .map(
      (key) =>
        `annotation ${key} on the ${object.kind} itself has no effect; move it to ${templateOf(object)}.metadata.annotations`,
    );
  const place = `${templateOf(object)}.metadata.annotations`;
  const labels = toldOfLabels(admission.context.view, object.metadata.labels, place);
  const told = [...known, ...foreignOnObject(admission, object, place), ...labels];
  return unknown === undefined ? told : [...told, unknown.message];
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
    .filter(({ key }) => template[key] === undefined)
    .map(
      ({ key, system }) =>
        `annotation ${key} on the ${object.kind} itself is nothing to berth, and ${system} looks at pods; what they ask for stands in ${place}`,
    );
}
