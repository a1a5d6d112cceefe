// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import fc from "fast-check";

/** What of an OpenAPI schema is compared. */
export interface Schema {
  readonly type: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}

type Json = Readonly<Record<string, unknown>>;

/** The schema has exactly the fields that a sample with every field has, of the same types. */
export function assertSameFields(schema: Schema, sample: unknown, path: string): void {
  if (schema.properties !== undefined) {
    const fields = asObject(sample, path);
    assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(fields).sort(), path);
    for (const [name, field] of Object.entries(schema.properties)) {
      assertSameFields(field, fields[name], `${path}.${name}`);
    }
  } else if (schema.additionalProperties !== undefined) {
    for (const value of Object.values(asObject(sample, path))) {
      assertSameFields(schema.additionalProperties, value, `${path}{}`);
    }
  } else if (schema.items !== undefined) {
    assert.ok(Array.isArray(sample) && sample.length > 0, `the sample has nothing in ${path}`);
    for (const item of sample) assertSameFields(schema.items, item, `${path}[]`);
  } else {
    assert.equal(schema.type === "integer" ? "number" : schema.type, typeof sample, path);
  }
}

function asObject(value: unknown, path: string): Json {
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), `${path} is no object`);
  return { ...value };
}

/** What is put somewhere into an object to spoil it. */
const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    "",
    "x y",
    "10.0.0.01",
    "::ffff:10.0.0.1",
    "FD00::1",
    "fe80::1%eth0",
    "10.0.0.1/24",
  ),
  fc.constantFrom<unknown>(-1, 1.5, 2 ** 53, true, null, [], {}, ["x"], { x: "y" }, "x".repeat(400)),
  fc.constantFrom<unknown>(
    "2026-02-30T00:00:00Z",
    "2026-01-01T00:00:00+01:00",
    "yesterday",
    "-1s",
    "1d",
    "9e9h",
  ),
);

/** An object with one thing changed: something else in its place, taken away, or added. */
export function spoiled(object: Json): fc.Arbitrary<Json> {
  const spots = [...places(object)];
  return fc
    .record({
      spot: fc.constantFrom(...spots),
      how: fc.constantFrom("replace", "replace", "remove", "add"),
      what: junk,
    })
    .map(({ spot, how, what }) => {
      const copy = structuredClone(object);
      const parent = spot.path.reduce<Record<string, unknown>>(
        (node, key) => node[key] as Record<string, unknown>,
        copy as Record<string, unknown>,
      );
      if (how === "replace") parent[spot.key] = what;
      else if (how === "add") parent[Array.isArray(parent) ? String(parent.length) : "unheardOf"] = what;
      else if (Array.isArray(parent)) parent.splice(Number(spot.key), 1);
      else delete parent[spot.key];
      return copy;
    });
}

interface Spot {
  /** Keys from the top to the parent. */
  readonly path: readonly string[];
  readonly key: string;
}

function* places(node: unknown, path: readonly string[] = []): Generator<Spot> {
  if (typeof node !== "object" || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    yield { path, key };
    yield* places(value, [...path, key]);
  }
}
