// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { granted } from "../../test/support/fixtures.ts";
import { isReservedOrdinal } from "./kruise-ordinals.ts";

it("ordinals that OpenKruise leaves out are numbers and ranges, and anything else is none", () => {
  const spec = { reserveOrdinals: [1, "3-5", "7", "x", "9-", null, -2] };
  const object = granted(readObject({ kind: "StatefulSet", spec }));
  const out = Array.from({ length: 12 }, (_, ordinal) => ordinal).filter((n) => isReservedOrdinal(object, n));
  assert.deepEqual(out, [1, 3, 4, 5, 7]);
  assert.equal(isReservedOrdinal(granted(readObject({ kind: "StatefulSet", spec: {} })), 0), false);
});
