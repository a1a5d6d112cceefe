// SPDX-License-Identifier: Apache-2.0

import type { NodeExpression, NodeTerm } from "../model/node-terms.ts";
import { Fields } from "./kubernetes-object.ts";

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] as const;
/** Values and expressions together. Each is compared with each node; schedulers find more of them slow, too. */
const MOST_VALUES = 1024;

/**
 * The nodes that a pod's spec allows: `nodeName`, `nodeSelector` and the required node affinity, all of which must hold.
 * Undefined: any node. What the API server is going to refuse excludes nothing, nor does what is too long to be compared.
 */
export function nodeTermsOf(spec: Fields): readonly NodeTerm[] | undefined {
  const terms = allTermsOf(spec);
  let values = 0;
  for (const term of terms ?? []) {
    for (const expression of term) values += 1 + expression.values.length;
    if (values > MOST_VALUES) return undefined;
  }
  return terms;
}

function allTermsOf(spec: Fields): readonly NodeTerm[] | undefined {
  const always = [...nodeName(spec), ...nodeSelector(spec)];
  const alternatives = spec
    .at("affinity")
    .at("nodeAffinity")
    .at("requiredDuringSchedulingIgnoredDuringExecution")
    .list("nodeSelectorTerms")
    .map((term) => termOf(new Fields(term)))
    .filter((term) => term.length > 0);
  if (alternatives.length > 0) return alternatives.map((term) => [...always, ...term]);
  return always.length === 0 ? undefined : [always];
}

function nodeName(spec: Fields): NodeTerm {
  const name = spec.text("nodeName");
  return name === "" ? [] : [{ key: "metadata.name", operator: "In", values: [name], of: "name" }];
}

function nodeSelector(spec: Fields): NodeTerm {
  return Object.entries(spec.texts("nodeSelector")).map(([key, value]) => ({
    ...{ key, operator: "In", values: [value], of: "labels" },
  }));
}

function termOf(term: Fields): NodeTerm {
  return [
    ...term.list("matchExpressions").flatMap((one) => expressionOf(new Fields(one), "labels")),
    ...term.list("matchFields").flatMap((one) => expressionOf(new Fields(one), "name")),
  ];
}

function expressionOf(one: Fields, of: NodeExpression["of"]): NodeExpression[] {
  const operator = OPERATORS.find((known) => known === one.text("operator"));
  const key = one.text("key");
  if (operator === undefined || (of === "name" && key !== "metadata.name")) return [];
  return [{ key, operator, values: one.list("values").filter((value) => typeof value === "string"), of }];
}
