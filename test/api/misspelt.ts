// SPDX-License-Identifier: Apache-2.0
// What people mistype, made from the schemas of the definitions: a field that is added there is covered by itself.
import type { Json } from "../support/objects.ts";
import type { Definition } from "./crds.ts";
import type { Schema } from "./schema.ts";

/** One object with one mistake. */
export interface Mistake {
  /** Of the field as it was written, as the API server says it: `spec.ranges[0].cidrr`. */
  readonly path: string;
  readonly object: Json;
}

/** Of the wrong type, and what it should have been. */
export interface WrongType extends Mistake {
  readonly type: string;
}

interface Field {
  /** Names, and 0 for the first item of a list. */
  readonly steps: readonly (string | 0)[];
  readonly schema: Schema;
  /** The name is the schema's, and not one that people choose, as a label's key. */
  readonly named: boolean;
}

const WRONG: Readonly<Record<string, unknown>> = {
  object: "text",
  array: "text",
  string: 7,
  integer: "text",
  boolean: "text",
};

/** Every field of the spec with its last letter twice, and in upper case. */
export function misspeltFields(definition: Definition): readonly Mistake[] {
  const named = fieldsOf(definition).filter((field) => field.named);
  return named.flatMap(({ steps }) => {
    const name = String(steps.at(-1));
    return [`${name}${name.at(-1)}`, name.toUpperCase()].map((wrong) => {
      const written = [...steps.slice(0, -1), wrong];
      return { path: pathOf(written), object: objectWith(definition, written, "x") };
    });
  });
}

/** Every field of the spec, and every item of its lists, with a value of another type. */
export function wrongTypes(definition: Definition): readonly WrongType[] {
  return fieldsOf(definition).map(({ steps, schema: { type } }) => ({
    path: pathOf(steps),
    type,
    object: objectWith(definition, steps, WRONG[type]),
  }));
}

function fieldsOf({ spec: { versions } }: Definition): readonly Field[] {
  const whole = versions[0]?.schema.openAPIV3Schema as Schema | undefined;
  const spec = whole?.properties?.["spec"];
  if (spec === undefined) throw new Error("there is no spec");
  return [...below({ steps: ["spec"], schema: spec, named: true })];
}

function* below({ steps, schema }: Field): Generator<Field> {
  const inside: Field[] = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    return { steps: [...steps, name], schema: field, named: true };
  });
  if (schema.items !== undefined) inside.push({ steps: [...steps, 0], schema: schema.items, named: false });
  if (schema.additionalProperties !== undefined) {
    inside.push({ steps: [...steps, "zone"], schema: schema.additionalProperties, named: false });
  }
  for (const field of inside) {
    yield field;
    yield* below(field);
  }
}

function pathOf(steps: Field["steps"]): string {
  return steps
    .map((step) => (step === 0 ? "[0]" : `.${step}`))
    .join("")
    .slice(1);
}

/** With nothing but that field, and what is around it: what else is missing is said beside it. */
function objectWith({ spec }: Definition, steps: Field["steps"], value: unknown): Json {
  const filled = steps.reduceRight<unknown>(
    (inner, step) => (step === 0 ? [inner] : { [step]: inner }),
    value,
  );
  const apiVersion = `${spec.group}/${spec.versions[0]?.name}`;
  return { apiVersion, kind: spec.names.kind, ...(filled as Json) };
}
