// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";

const folder = new URL("../../charts/berth/files/crds/", import.meta.url);

/** A whole number beyond this is another one as soon as it is read: JavaScript has no larger ones that are exact. */
const MOST = Number.MAX_SAFE_INTEGER;

describe("the definitions of the custom resources", () => {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".yaml"))) {
    it(`take no whole number that Berth cannot read: ${file}`, () => {
      const definition: unknown = parse(readFileSync(new URL(file, folder), "utf8"));
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
