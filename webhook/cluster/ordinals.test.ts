// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { readObject } from "../../allocator/kube-object.ts";
import { granted } from "../../test/support/fixtures.ts";
import { isLeftOut } from "./ordinals.ts";

it("ordinals that OpenKruise leaves out are numbers and ranges, and anything else is none", () => {
  const spec = { reserveOrdinals: [1, "3-5", "7", "x", "9-", null, -2] };
  const object = granted(readObject({ kind: "StatefulSet", spec }));
  const out = Array.from({ length: 12 }, (_, ordinal) => ordinal).filter((n) => isLeftOut(object, n));
  assert.deepEqual(out, [1, 3, 4, 5, 7]);
  assert.equal(isLeftOut(granted(readObject({ kind: "StatefulSet", spec: {} })), 0), false);
});
