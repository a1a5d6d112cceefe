// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { isSubdomain, quote } from "../../allocator/base/validation.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { ManifestObject } from "./documents.ts";
import { type KindFacts, kindNamed, MANAGED } from "./kinds.ts";
import { wrongField } from "./object-fields.ts";

export type Json = Readonly<Record<string, unknown>>;

/** One object that is about to be sent, its namespace filled in. */
export interface Subject {
  readonly kind: KindFacts;
  /** Empty for a kind without namespaces. */
  readonly namespace: string;
  /** Empty when the name is still to be made from `generateName`. */
  readonly name: string;
  readonly generateName: string;
  readonly json: Json;
}

/** An object by its name alone. */
export type SubjectKey = Pick<Subject, "kind" | "namespace" | "name">;

const DEFAULT_NAMESPACE = "default";
/** RFC 1123, as the API server asks of namespaces. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Checks what the API server checks before admission. OBJECT_INVALID names the field. */
export function subjectOf(object: ManifestObject): Subject | Refusal {
  return wrongField(object) ?? placeOf(object);
}

/** The same without a look at what the object says: to delete one it is enough to know which. */
export function placeOf({ kind, json }: ManifestObject): Subject | Refusal {
  const metadata = new Fields(json).at("metadata");
  const [name, generateName] = [metadata.text("name"), metadata.text("generateName")];
  if (name === "" && (generateName === "" || kind.kind !== "Pod"))
    return refuse("OBJECT_INVALID", "metadata.name is missing");
  const written = metadata.text("namespace");
  const namespace = kind.namespaced ? (written === "" ? DEFAULT_NAMESPACE : written) : "";
  const bad = badName(name === "" ? `${generateName}x` : name, namespace);
  if (bad !== undefined) return bad;
  const { namespace: _, ...rest } = metadata.value;
  const filled = { ...rest, ...(namespace === "" ? {} : { namespace }) };
  return { kind, namespace, name, generateName, json: { ...json, metadata: filled } };
}

/** How output names an object that cannot be sent: by what of its metadata can be read. */
export function titleAsWritten({ kind, json }: ManifestObject): string {
  const metadata = new Fields(json).at("metadata");
  const [namespace, name] = [metadata.text("namespace"), metadata.text("name")];
  return name === "" ? (kind.names[0] ?? kind.kind) : titleOf({ kind, namespace, name });
}

/** How output names an object: pod/shop/web-1, ippool/db. */
export function titleOf({ kind, namespace, name, generateName = "" }: SubjectKey & Partial<Subject>): string {
  const last = name === "" ? `${generateName}*` : name;
  return [kind.names[0] ?? kind.kind, namespace, last].filter((part) => part !== "").join("/");
}

/**
 * Reads `pod/shop/web-1`, `pod/web-1` or `ippool/db`, each by itself, or as kubectl has it: a kind, then names such as
 * `shop/web-1` or `web-1`.
 */
export function keysOfOperands(
  operands: readonly string[],
  namespace: string = DEFAULT_NAMESPACE,
): (SubjectKey | Refusal)[] {
  const [first = "", ...names] = operands;
  const kind = first.includes("/") ? undefined : kindNamed(first);
  if (kind === undefined) return operands.map((operand) => keyOfOperand(operand, namespace));
  if (names.length === 0) return [refuse("OBJECT_INVALID", `name the ${kind.names[0]}: ${formOf(kind)}`)];
  return names.map((name) => keyOf(kind, name, namespace));
}

/** One by itself. */
export function keyOfOperand(operand: string, namespace = DEFAULT_NAMESPACE): SubjectKey | Refusal {
  const [kindName = "", ...rest] = operand.split("/");
  const kind = kindNamed(kindName);
  if (kind !== undefined) return keyOf(kind, rest.join("/"), namespace);
  const known = MANAGED.map(({ names }) => names[0]).join(", ");
  return refuse("OBJECT_INVALID", `${quote(kindName)} is no kind that berth keeps; there are ${known}`);
}

function keyOf(kind: KindFacts, text: string, usual: string): SubjectKey | Refusal {
  const parts = text.split("/");
  if (parts.includes("") || parts.length > (kind.namespaced ? 2 : 1))
    return refuse(
      "OBJECT_INVALID",
      `${quote(`${kind.names[0]}/${text}`)} is not of the form ${formOf(kind)}`,
    );
  const name = parts.at(-1) ?? "";
  const namespace = kind.namespaced ? (parts.length === 2 ? (parts[0] ?? "") : usual) : "";
  return badName(name, namespace) ?? { kind, namespace, name };
}

function formOf(kind: KindFacts): string {
  return `${kind.names[0]}/${kind.namespaced ? "[NAMESPACE/]NAME" : "NAME"}`;
}

/** Reads NAMESPACE/NAME, or NAME where the namespace is known. */
export function claimKeyOf(operand: string, known?: string): { namespace: string; name: string } | Refusal {
  if (known !== undefined && operand !== "" && !operand.includes("/")) {
    return badName(operand, known) ?? { namespace: known, name: operand };
  }
  const [namespace = "", name = "", ...more] = operand.split("/");
  if (namespace === "" || name === "" || more.length > 0)
    return refuse("OBJECT_INVALID", `${quote(operand)} is not of the form [NAMESPACE/]NAME`);
  return badName(name, namespace) ?? { namespace, name };
}

function badName(name: string, namespace: string): Refusal | undefined {
  if (!isSubdomain(name)) {
    return refuse(
      "OBJECT_INVALID",
      `${quote(name)} is no name: lower-case letters, digits, - and ., at most 253`,
    );
  }
  if (namespace === "" || LABEL.test(namespace)) return undefined;
  return refuse(
    "OBJECT_INVALID",
    `${quote(namespace)} is no namespace: lower-case letters, digits and -, at most 63`,
  );
}
