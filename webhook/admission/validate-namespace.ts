// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { servedDefaults } from "../../allocator/demand/foreign-pools.ts";
import { NAMESPACE_DEFAULTS, readRequest } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  type AdmissionRequest,
  allowed,
  denied,
  type Handler,
  type Operation,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, type ObjectStore, objectOf } from "./admission-context.ts";
import { warningsOfDefaultPools } from "./default-pools.ts";
import { foreignInNamespace } from "./foreign-review.ts";
import { idleDefaults, warnIgnoredDefaults } from "./ignored-defaults.ts";
import { warningsOfLabels } from "./stray-labels.ts";
import { unknownIn } from "./unknown-keys.ts";

/** `/validate/namespaces`: the labels that pools select by and the defaults for pods; refuses defaults that nobody can read. */
export function validateNamespaces(admission: AdmissionContext): Handler {
  return async (request) => {
    const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, ["Namespace"]) ?? unreadable(request, object);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const warnings = await warningsOf(admission, request, object);
    if (isRefusal(warnings)) return denied(request.uid, warnings);
    if (admission.embedded === undefined) {
      const served = servedDefaults(admission.context.view, object.metadata.annotations, admission.dialects);
      return allowed(request.uid, [...warnings, ...warnIgnoredDefaults(request.operation, object, served)]);
    }
    if (!request.dryRun) await keep(admission.embedded, request.operation, object);
    return allowed(request.uid, warnings);
  };
}

/** What it says that does nothing. */
async function warningsOf(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<readonly string[] | Refusal> {
  if (request.operation === "DELETE") return [];
  const foreign = foreignInNamespace(admission, request, object);
  if (isRefusal(foreign)) return foreign;
  return [
    ...warningsOfLabels(admission.context.view, object.metadata.labels),
    ...(await warningsOfDefaultPools(admission, request, object)),
    ...idleDefaults(object),
    ...foreign,
  ];
}

/** One that goes may say what it likes. */
function unreadable(request: AdmissionRequest, object: KubeObject): Refusal | undefined {
  if (request.operation === "DELETE") return undefined;
  return unknownIn(request, object, "Namespace") ?? unreadableDefaults(object.metadata.annotations);
}

/** Defaults for pods that nobody can read. */
export function unreadableDefaults(annotations: Labels): Refusal | undefined {
  // what another system reads on a namespace is not Berth's to judge
  const own = NAMESPACE_DEFAULTS.flatMap((key) => {
    const value = annotations[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  const defaults = readRequest({}, { name: "", labels: {}, annotations: Object.fromEntries(own) });
  return isRefusal(defaults) ? defaults : undefined;
}

/** A namespace is cluster-scoped, although its review carries its own name as the namespace. */
async function keep(objects: ObjectStore, operation: Operation, object: KubeObject): Promise<void> {
  if (operation === "DELETE") await objects.forget("Namespace", "", object.metadata.name);
  else await objects.keep({ ...object, metadata: { ...object.metadata, namespace: "" } });
}
