// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { definitions } from "../api/crds.ts";

/** A whole number beyond this is another one as soon as it is read: JavaScript has no larger ones that are exact. */
const MOST = Number.MAX_SAFE_INTEGER;

describe("the definitions of the custom resources", () => {
  for (const definition of definitions()) {
    it(`take no whole number that Berth cannot read: ${definition.metadata.name}`, () => {
      assert.deepEqual([...withoutBound(definition, "")], []);
    });
  }
});

function* withoutBound(node: unknown, path: string): Iterable<string> {
  if (typeof node !== "object" || node === null) return;
  const { type, format, maximum } = node as Readonly<Record<string, unknown>>;
  const isBounded = format === "int32" || (typeof maximum === "number" && maximum <= MOST);
  // statuses of pools are written and not read
  if (type === "integer" && path.includes(".properties.spec.") && !isBounded) yield path;
  for (const [key, value] of Object.entries(node)) yield* withoutBound(value, `${path}.${key}`);
}
