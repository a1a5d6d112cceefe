// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  type AdmissionRequest,
  allowed,
  denied,
  type Handler,
  type Operation,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, type ObjectStore, objectOf } from "./admission-context.ts";
import { idleDefaults, warnIgnoredDefaults } from "./opt-in.ts";
import { unknownIn } from "./own-keys.ts";

/** `/validate/namespaces`: the labels that pools select by and the defaults for pods; refuses defaults that nobody can read. */
export function validateNamespaces(admission: AdmissionContext): Handler {
  return async (request) => {
    const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, ["Namespace"]) ?? unreadable(request, object);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const idle = request.operation === "DELETE" ? [] : idleDefaults(object);
    if (admission.embedded === undefined) {
      return allowed(request.uid, [...idle, ...warnIgnoredDefaults(request.operation, object)]);
    }
    if (!request.dryRun) await keep(admission.embedded, request.operation, object);
    return allowed(request.uid, idle);
  };
}

/** One that goes may say what it likes. */
function unreadable(request: AdmissionRequest, object: KubeObject): Refusal | undefined {
  if (request.operation === "DELETE") return undefined;
  const unknown = unknownIn(request, object, "Namespace");
  if (unknown !== undefined) return unknown;
  const defaults = readRequest(object.metadata.annotations);
  return isRefusal(defaults) ? defaults : undefined;
}

/** A namespace is cluster-scoped, although its review carries its own name as the namespace. */
async function keep(keeper: ObjectStore, operation: Operation, object: KubeObject): Promise<void> {
  if (operation === "DELETE") await keeper.forget("Namespace", "", object.metadata.name);
  else await keeper.keep({ ...object, metadata: { ...object.metadata, namespace: "" } });
}
