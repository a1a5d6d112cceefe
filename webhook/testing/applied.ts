// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { applyPatch } from "rfc6902";
import { applyAndVerify, type PatchOp } from "../review/json-patch.ts";

/** What another implementation makes of the operations; both must agree. */
export function applied(object: unknown, ops: readonly PatchOp[]): unknown {
  const copy = structuredClone(object);
  for (const outcome of applyPatch(copy, structuredClone([...ops]))) assert.equal(outcome, null);
  assert.deepEqual(structuredClone(applyAndVerify(object, ops)), copy);
  return copy;
}
