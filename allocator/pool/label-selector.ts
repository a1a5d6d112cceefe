// SPDX-License-Identifier: Apache-2.0
import { assertNever, type Refusal } from "../base/errors.ts";
import { invalidPool, list, mapOf, object, oneOf, quote, text, type Validator } from "../base/validation.ts";

/** One term of a LabelSelector; `values` belongs to In and NotIn alone. */
export interface LabelExpression {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

/** As in Kubernetes (meta/v1 LabelSelector): everything must hold, `{}` matches all. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelExpression[];
}

type Labels = Readonly<Record<string, string>>;

/** A prefix of DNS labels, then a name of at most 63 characters (Kubernetes: labels, syntax and character set). */
const KEY = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** Whether the labels satisfy the selector. No selector restricts nothing, as `{}`. */
export function matches(selector: LabelSelector | undefined, labels: Labels): boolean {
  const pairs = Object.entries(selector?.matchLabels ?? {});
  if (!pairs.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)) return false;
  return (selector?.matchExpressions ?? []).every((expression) => holds(expression, labels));
}

/** NotIn holds for labels without the key, as in Kubernetes. */
function holds({ key, operator, values = [] }: LabelExpression, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return assertNever(operator);
  }
}

function labelKey(value: unknown, field: string): Refusal | undefined {
  const refusal = text(317)(value, field); // 253 of the prefix, the slash, 63 of the name
  if (refusal !== undefined || KEY.test(String(value))) return refusal;
  return invalidPool(field, `${quote(value)} is not a label key such as topology.kubernetes.io/zone`);
}

function labelValue(value: unknown, field: string): Refusal | undefined {
  if (typeof value === "string" && VALUE.test(value)) return undefined;
  return invalidPool(field, `${quote(value)} is not a label value: at most 63 letters, digits, -, _ or .`);
}

const EXPRESSION_FIELDS = object(
  {
    key: labelKey,
    operator: oneOf("In", "NotIn", "Exists", "DoesNotExist"),
    values: list(labelValue, 256),
  },
  ["key", "operator"],
);

function expression(value: unknown, field: string): Refusal | undefined {
  const refusal = EXPRESSION_FIELDS(value, field);
  if (refusal !== undefined) return refusal;
  const { operator, values = [] } = value as LabelExpression; // the shape has just said so
  const needsValues = operator === "In" || operator === "NotIn";
  if (needsValues === values.length > 0) return undefined;
  return invalidPool(
    `${field}.values`,
    `must ${needsValues ? "not " : ""}be empty for the operator ${operator}`,
  );
}

const SELECTOR: Validator = object({
  matchLabels: mapOf(labelKey, labelValue),
  matchExpressions: list(expression, 64),
});

/** What is wrong with a selector from outside; undefined: it is a LabelSelector. */
export function checkSelector(selector: unknown, where: string): Refusal | undefined {
  return SELECTOR(selector, where);
}
