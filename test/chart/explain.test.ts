// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { parse } from "yaml";

const folder = new URL("../../charts/berth/files/crds/", import.meta.url);

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
}

interface Definition {
  readonly spec: {
    readonly names: { readonly singular: string };
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

/** Described by Kubernetes itself. */
const OF_EVERY_OBJECT: readonly string[] = ["apiVersion", "kind", "metadata"];

const definitions = readdirSync(folder)
  .filter((file) => file.endsWith(".yaml"))
  .map((file) => parse(readFileSync(new URL(file, folder), "utf8")) as Definition);

describe("kubectl explain", () => {
  for (const { spec } of definitions) {
    it(`has a sentence for every field of an ${spec.names.singular}`, () => {
      const schema = spec.versions[0]?.schema.openAPIV3Schema ?? {};
      const { metadata: _, ...properties } = schema.properties ?? {};
      assert.deepEqual([...withoutSentence({ properties }, spec.names.singular)], []);
    });
  }

  it("says of each selector of a pool what it selects", () => {
    const pool = definitions.find(({ spec }) => spec.names.singular === "ippool");
    const fields = pool?.spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"]?.properties ?? {};
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
