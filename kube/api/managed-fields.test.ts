// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parsedWithoutManagedFields } from "./managed-fields.ts";

const LONG = "x".repeat(64 * 1024);
const fields = [{ manager: "a", fieldsV1: { 'k:{"type":"]"}': { ".": {}, "f:\\": [[]] } } }, "]", "\\"];

describe("an object with a great many managed fields", () => {
  it("is decoded without them, wherever they stand, and is otherwise as it is", () => {
    const rest = { labels: { '\\"managedFields': "[1]", managedFields: "[" }, note: '"managedFields":[1,2' };
    const of = (managedFields: unknown) => ({
      type: "MODIFIED",
      object: { metadata: { ...rest, managedFields, name: "a" }, items: [{ managedFields, spec: LONG }] },
    });
    assert.deepEqual(parsedWithoutManagedFields(JSON.stringify(of(fields))), of([]));
    const odd = { ['a"managedFields']: [1, 2], managedFields: { a: [1] }, long: LONG };
    assert.deepEqual(parsedWithoutManagedFields(JSON.stringify(odd)), odd);
  });

  it("is decoded whole where it is small", () => {
    const small = { metadata: { managedFields: fields } };
    assert.deepEqual(parsedWithoutManagedFields(JSON.stringify(small)), small);
  });

  it("is refused as JSON.parse does where it is cut off", () => {
    const whole = JSON.stringify({ long: LONG, managedFields: fields });
    for (const cut of [1, 3, 10, 60])
      assert.throws(() => parsedWithoutManagedFields(whole.slice(0, -cut)), SyntaxError);
    assert.throws(() => parsedWithoutManagedFields(`${whole}]`), SyntaxError);
  });
});
