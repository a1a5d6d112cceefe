// SPDX-License-Identifier: Apache-2.0
// On which nodes a pod may run, by its own spec.

import type { Labels } from "../base/ports.ts";

/** As in a NodeSelectorTerm. `name`: of the node itself (`matchFields`), not of one of its labels. */
export interface NodeExpression {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values: readonly string[];
  readonly of: "labels" | "name";
}

/** All of its expressions must hold; one that has none matches no node. */
export type NodeTerm = readonly NodeExpression[];

export interface NodeFacts {
  readonly name: string;
  readonly labels: Labels;
}

/** Where a pod may run, as far as that is known. */
export interface PodNodes {
  /** Alternatives; absent: any node. */
  readonly terms?: readonly NodeTerm[];
  /** The nodes that there are now; absent or undefined: not known. */
  readonly known?: () => Iterable<NodeFacts> | undefined;
}

export function mayRunOn(terms: PodNodes["terms"], node: NodeFacts): boolean {
  if (terms === undefined) return true;
  return terms.some((term) => term.length > 0 && term.every((expression) => holdsOn(expression, node)));
}

function holdsOn({ key, operator, values, of }: NodeExpression, { name, labels }: NodeFacts): boolean {
  const label = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const value = of === "name" ? name : label;
  if (operator === "DoesNotExist") return value === undefined;
  if (operator === "NotIn") return value === undefined || !values.includes(value);
  return value !== undefined && (operator === "Exists" || allows({ operator, values }, value));
}

/** Whether a value that is there satisfies the expression. */
export function allows(
  { operator, values }: Pick<NodeExpression, "operator" | "values">,
  value: string,
): boolean {
  const [bound = ""] = values;
  switch (operator) {
    case "In":
      return values.includes(value);
    case "NotIn":
      return !values.includes(value);
    case "Gt":
      return isInteger(value) && isInteger(bound) && BigInt(value) > BigInt(bound);
    case "Lt":
      return isInteger(value) && isInteger(bound) && BigInt(value) < BigInt(bound);
    default:
      return operator === "Exists";
  }
}

function isInteger(text: string): boolean {
  return /^[+-]?[0-9]{1,19}$/.test(text);
}

/** The names that every alternative asks for by name, as DaemonSets do; undefined: one of them asks for no name. */
export function namesIn(terms: readonly NodeTerm[]): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const term of terms) {
    const named = term.find(({ of, operator }) => of === "name" && operator === "In");
    if (named === undefined) return undefined;
    for (const name of named.values) names.add(name);
  }
  return names;
}
