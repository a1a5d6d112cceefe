// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Definition, definitions } from "../api/crds.ts";

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

/** Described by Kubernetes itself. */
const OF_EVERY_OBJECT: readonly string[] = ["apiVersion", "kind", "metadata"];

/** Its types are those of JSON Schema. */
function schemaOf({ spec }: Definition): Schema {
  return (spec.versions[0]?.schema.openAPIV3Schema ?? {}) as Schema;
}

describe("kubectl explain", () => {
  for (const definition of definitions()) {
    const { singular } = definition.spec.names;
    it(`has a sentence for every field of an ${singular}`, () => {
      const { metadata: _, ...properties } = schemaOf(definition).properties ?? {};
      assert.deepEqual([...withoutSentence({ properties }, singular)], []);
    });
  }

  it("says of each selector of a pool what it selects", () => {
    const pool = definitions().find(({ spec }) => spec.names.singular === "ippool");
    const fields = (pool && schemaOf(pool).properties?.["spec"]?.properties) ?? {};
    for (const [name, of] of [
      ["nodeSelector", "nodes"],
      ["namespaceSelector", "namespaces"],
      ["podSelector", "pods"],
    ] as const)
      assert.match(
        fields[name]?.description ?? "",
        new RegExp(`^Labels of the ${of} .*Absent, all ${of}\\.$`),
      );
  });
});

function* withoutSentence(
  { properties, items, additionalProperties }: Schema,
  path: string,
): Iterable<string> {
  for (const [name, field] of Object.entries(properties ?? {})) {
    const isKnown = !path.includes(".") && OF_EVERY_OBJECT.includes(name);
    if (!isKnown && !/^[A-Z].*[a-z0-9]/.test(field.description ?? "")) yield `${path}.${name}`;
    yield* withoutSentence(field, `${path}.${name}`);
  }
  if (items !== undefined) yield* withoutSentence(items, path);
  if (additionalProperties !== undefined) yield* withoutSentence(additionalProperties, path);
}
