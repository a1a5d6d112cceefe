// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { applied } from "../testing/applied.ts";
import { annotate, applyAndVerify, type PatchOp } from "./json-patch.ts";

describe("prove", () => {
  it("returns what the API server will have and leaves object and operations as they are", () => {
    const object = { metadata: {}, list: ["a"] };
    const ops: PatchOp[] = [
      { op: "add", path: "/metadata/annotations", value: {} },
      { op: "add", path: "/metadata/annotations/a~1b", value: "1" },
      { op: "add", path: "/list/-", value: { deep: [] } },
      { op: "add", path: "/list/0", value: "first" },
      { op: "replace", path: "/list/1", value: "second" },
    ];
    const before = structuredClone({ object, ops });
    const after = applyAndVerify(object, ops);
    assert.deepEqual(after, {
      metadata: { annotations: { "a/b": "1" } },
      list: ["first", "second", { deep: [] }],
    });
    assert.deepEqual({ object, ops }, before);
    assert.deepEqual(applied(object, ops), after);
  });

  for (const { name, object, op, message } of [
    {
      name: "a parent that is missing",
      object: { metadata: {} },
      op: { op: "add", path: "/metadata/annotations/x", value: "1" },
      message: "patch does not apply: add /metadata/annotations/x: Path not found in document",
    },
    {
      name: "a parent that is a text, which jsonpatch passes over",
      object: { metadata: "none" },
      op: { op: "add", path: "/metadata/x", value: "1" },
      message: "patch does not apply: add /metadata/x: nothing was written",
    },
    {
      name: "a place beyond the end of a list",
      object: { list: [] },
      op: { op: "add", path: "/list/1", value: "1" },
      message: "patch does not apply: add /list/1: Add operation must not attempt to create a sparse array!",
    },
    {
      name: "replacing nothing",
      object: {},
      op: { op: "replace", path: "/x", value: "1" },
      message: "patch does not apply: replace /x: Replace operation must point to an existing value!",
    },
    {
      name: "the prototype",
      object: {},
      op: { op: "add", path: "/__proto__", value: { polluted: true } },
      message: "patch does not apply: add /__proto__: nothing was written",
    },
    {
      name: "a value that JSON leaves out",
      object: {},
      op: { op: "add", path: "/x", value: undefined },
      message: "patch does not apply: add /x: nothing was written",
    },
  ] as const) {
    it(`refuses ${name}`, () => {
      assert.throws(
        () => applyAndVerify(object, [op]),
        (error: unknown) =>
          error instanceof BerthError && error.code === "INTERNAL" && error.message === message,
      );
      assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
    });
  }

  it("refuses an object that is null, as that of a DELETE", () => {
    assert.throws(() => applyAndVerify(null, annotate(undefined, { a: "b" })), { code: "INTERNAL" });
  });
});
