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
import { beforeOf } from "./unknown-keys.ts";

/**
 * What somebody is told who leaves the size out: nodes have addresses of the pool from now on; of one that is for some pods, those of them
 * that ask for nothing have addresses of it, too.
 */
export function warningOfSize(
  pool: string,
  { networks }: Readonly<Record<string, unknown>>,
  { ipv4, ipv6, ahead }: NonNullable<ReturnType<typeof settledSize>>,
): string {
  const sizes = [ipv4 && `ipv4: ${ipv4}`, ipv6 && `ipv6: ${ipv6}`, ahead === 0 && "ahead: 0"];
  const set = `pool ${pool} has no spec.blockSize, and gets {${sizes.filter(Boolean).join(", ")}}`;
  const which = (networks ?? undefined) === undefined ? "that it selects and" : "of its networks";
  return ahead === 0
    ? `${set}: pods ${which} that ask for nothing get single addresses of it, too. Make it with blockSize: {} if it is only for pods that ask`
    : `${set}: nodes get single addresses of it, as many as their pods need and two more each. That never changes`;
}

/**
 * `/mutate/pools`: a pool that is made to serve pods that ask for nothing, by `default`, selectors or `networks`, and says no size, serves them one address at a
 * time. One that has been made so keeps its size, though its manifest does not say it.
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
    const spec = object.spec.value;
    const value = settledSize(spec, before);
    if (value === undefined) return Promise.resolve(allowed(request.uid));
    const ops: readonly PatchOp[] = [{ op: "add", path: pointer("spec", "blockSize"), value }];
    const warnings = before === undefined ? [warningOfSize(object.metadata.name, spec, value)] : [];
    return Promise.resolve(patched(request.uid, ops, warnings));
  };
}
