// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { settledSize } from "../../allocator/pool/settled-size.ts";
import {
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
  patched,
} from "../review/admission-review.ts";
import { type PatchOp, pointer } from "../review/json-patch.ts";
import { expectKind, objectOf } from "./admission-context.ts";
import { beforeOf } from "./own-keys.ts";

/** What somebody is told who leaves the size out: nodes have addresses of the pool from now on. */
export const SINGLES_TOLD =
  "spec.blockSize is not given, so nodes get single addresses of this pool, as many as their pods need and two more each; it was set to say so (IPv4 32, IPv6 128), and never changes";

/**
 * `/mutate/pools`: a pool that is made to serve pods that ask for nothing, and says no size, serves them one address at a time. One
 * that has been made so keeps its size, though its manifest does not say it.
 */
export function mutatePools(): Handler {
  return (request): Promise<AdmissionResponse> => {
    if (request.operation === "DELETE" || request.subResource !== "")
      return Promise.resolve(allowed(request.uid));
    const object = objectOf(request, "object");
    if (isRefusal(object)) return Promise.resolve(denied(request.uid, object));
    const wrong = expectKind(object, ["IPPool"]);
    if (wrong !== undefined) return Promise.resolve(denied(request.uid, wrong));
    const before = beforeOf(request)?.spec.value;
    const value = settledSize(object.spec.value, before);
    if (value === undefined) return Promise.resolve(allowed(request.uid));
    const ops: readonly PatchOp[] = [{ op: "add", path: pointer("spec", "blockSize"), value }];
    return Promise.resolve(patched(request.uid, ops, before === undefined ? [SINGLES_TOLD] : []));
  };
}
