// SPDX-License-Identifier: Apache-2.0

import { readRequest } from "../../allocator/dialects.ts";
import { isRefusal } from "../../allocator/errors.ts";
import { type Desk, expectKind, objectOf } from "./desk.ts";
import { allowed, denied, type Handler } from "./review.ts";

/** `/validate/namespaces`: the labels that pools select by and the defaults for pods; refuses defaults that nobody can read. */
export function validateNamespaces(desk: Desk): Handler {
  return async (request) => {
    const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, ["Namespace"]);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const { name, annotations } = object.metadata;
    const defaults = readRequest(annotations);
    if (request.operation !== "DELETE" && isRefusal(defaults)) return denied(request.uid, defaults);
    if (desk.embedded === undefined || request.dryRun) return allowed(request.uid);
    // A namespace is cluster-scoped, although its review carries its own name as the namespace.
    if (request.operation === "DELETE") await desk.embedded.forget("Namespace", "", name);
    else await desk.embedded.keep({ ...object, metadata: { ...object.metadata, namespace: "" } });
    return allowed(request.uid);
  };
}
