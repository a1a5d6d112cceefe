// SPDX-License-Identifier: Apache-2.0
// Patches are built here and proven here. A patch that does not apply is an internal error of the API server,
// which rejects the pod whatever the failurePolicy says.
import { isDeepStrictEqual } from "node:util";
import { apply_patch } from "jsonpatch";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { isObject } from "../../allocator/base/validation.ts";
import type { LabelExpression } from "../../allocator/pool/label-selector.ts";

/** RFC 6902. `add` replaces what an object already has under the key; in a list, `-` is the place after the last. */
export interface PatchOp {
  readonly op: "add" | "replace";
  /** JSON Pointer, RFC 6901. */
  readonly path: string;
  readonly value: unknown;
}

/** A JSON Pointer; `~` must be escaped before `/`, whose escape contains one. */
export function pointer(...segments: readonly (string | number)[]): string {
  return segments
    .map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

const ANNOTATIONS = ["metadata", "annotations"];

/**
 * Sets annotations beside those that `metadata.annotations` has (undefined or null: there are none). Entries that
 * stand there already are left out.
 */
export function annotate(
  existing: Readonly<Record<string, unknown>> | null | undefined,
  entries: Readonly<Record<string, string>>,
): PatchOp[] {
  const wanted = Object.entries(entries);
  if (wanted.length === 0) return [];
  // one by one an `add` would find no parent
  if (existing === undefined || existing === null) {
    return [{ op: "add", path: pointer(...ANNOTATIONS), value: { ...entries } }];
  }
  return wanted
    .filter(([key, value]) => !Object.hasOwn(existing, key) || existing[key] !== value)
    .map(([key, value]) => ({ op: "add", path: pointer(...ANNOTATIONS, key), value }));
}

const SPEC = ["spec"];
const REQUIRED = [...SPEC, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
const TERMS = "nodeSelectorTerms";
const EXPRESSIONS = "matchExpressions";

/**
 * Restricts the pod to nodes for which every expression holds, beside what it asks for itself. The terms of a pod
 * are alternatives, so each gets the expressions; an empty term matches no node and must stay empty.
 */
export function addNodeAffinity(pod: unknown, expressions: readonly LabelExpression[]): PatchOp[] {
  if (expressions.length === 0) return [];
  const required = at(pod, REQUIRED);
  // no alternative at all is invalid, and for the API server to say: a term of ours would make it valid
  if (isObject(required)) {
    const terms = listAt(required, TERMS);
    if (terms.length > MOST_OPS) return [narrowed(terms, expressions)];
    return terms.flatMap((term, index) => narrow(term, index, expressions));
  }
  let depth = 1;
  while (isObject(at(pod, REQUIRED.slice(0, depth)))) depth++;
  const whole: unknown = { [TERMS]: [{ [EXPRESSIONS]: [...expressions] }] };
  const value = REQUIRED.slice(depth).reduceRight((inside, key) => ({ [key]: inside }), whole);
  return [{ op: "add", path: pointer(...REQUIRED.slice(0, depth)), value }];
}

/** Each operation is as much work as the list is long. */
const MOST_OPS = 16;

function narrowed(terms: readonly unknown[], expressions: readonly LabelExpression[]): PatchOp {
  const value = terms.map((term) => {
    const present = listAt(term, EXPRESSIONS);
    if (present.length === 0 && listAt(term, "matchFields").length === 0) return term;
    return { ...(isObject(term) ? term : {}), [EXPRESSIONS]: [...present, ...missing(present, expressions)] };
  });
  return { op: "replace", path: pointer(...REQUIRED, TERMS), value };
}

function missing(present: readonly unknown[], expressions: readonly LabelExpression[]) {
  return expressions.filter((wanted) => !present.some((one) => isDeepStrictEqual(one, wanted)));
}

function narrow(term: unknown, index: number, expressions: readonly LabelExpression[]): PatchOp[] {
  const present = listAt(term, EXPRESSIONS);
  if (present.length === 0 && listAt(term, "matchFields").length === 0) return [];
  const added = missing(present, expressions);
  if (added.length === 0) return [];
  const path = [...REQUIRED, TERMS, index, EXPRESSIONS];
  if (present.length === 0) return [{ op: "add", path: pointer(...path), value: added }];
  return added.map((value) => ({ op: "add", path: pointer(...path, "-"), value }));
}

/**
 * Applies the operations and returns what comes of it: what the API server will have. Called before a patch is sent.
 * @throws BerthError INTERNAL when one does not apply
 */
export function applyAndVerify(object: unknown, ops: readonly PatchOp[]): unknown {
  let patched = object;
  for (const op of ops) {
    // what is on the way to the value is copied, the rest is shared with the object
    const value = structuredClone(op.value);
    try {
      patched = apply_patch(patched, [{ ...op, value }]);
    } catch (error) {
      throw unproven(op, messageOf(error), error);
    }
    // into a text or a number `jsonpatch` adds in silence, and nothing comes of it
    if (value === undefined || !isDeepStrictEqual(written(patched, op), value)) {
      throw unproven(op, "nothing was written");
    }
  }
  return patched;
}

function unproven(op: PatchOp, why: string, cause?: unknown): BerthError {
  return new BerthError("INTERNAL", `patch does not apply: ${op.op} ${op.path}: ${why}`, { cause });
}

function written(document: unknown, op: PatchOp): unknown {
  const path = op.path
    .split("/")
    .slice(1)
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
  const list = at(document, path.slice(0, -1));
  return Array.isArray(list) && path.at(-1) === "-" ? list.at(-1) : at(document, path);
}

function at(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const key of path) {
    if (!isContainer(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const list = at(value, [key]);
  return Array.isArray(list) ? list : [];
}

/** An object or a list, whose keys are its indexes. */
function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
