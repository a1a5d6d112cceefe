// SPDX-License-Identifier: Apache-2.0

import { readRequest } from "../../allocator/dialects.ts";
import { isRefusal } from "../../allocator/errors.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { type Desk, expectKind, type Keeper, objectOf } from "./desk.ts";
import { unseenDefaults } from "./opt-in.ts";
import { allowed, denied, type Handler, type Operation } from "./review.ts";

/** `/validate/namespaces`: the labels that pools select by and the defaults for pods; refuses defaults that nobody can read. */
export function validateNamespaces(desk: Desk): Handler {
  return async (request) => {
    const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, ["Namespace"]);
    if (wrong !== undefined) return denied(request.uid, wrong);
    const defaults = request.operation === "DELETE" ? {} : readRequest(object.metadata.annotations);
    if (isRefusal(defaults)) return denied(request.uid, defaults);
    if (desk.embedded === undefined) return allowed(request.uid, unseenDefaults(request.operation, object));
    if (!request.dryRun) await keep(desk.embedded, request.operation, object);
    return allowed(request.uid);
  };
}

/** A namespace is cluster-scoped, although its review carries its own name as the namespace. */
async function keep(keeper: Keeper, operation: Operation, object: KubeObject): Promise<void> {
  if (operation === "DELETE") await keeper.forget("Namespace", "", object.metadata.name);
  else await keeper.keep({ ...object, metadata: { ...object.metadata, namespace: "" } });
}
