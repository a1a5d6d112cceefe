// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkSelector, type LabelSelector, matches } from "./label-selector.ts";

const labels = { zone: "beijing", tier: "db", empty: "" };

describe("matches", () => {
  for (const { name, selector, expected } of [
    { name: "no selector", selector: undefined, expected: true },
    { name: "the empty selector", selector: {}, expected: true },
    { name: "empty parts", selector: { matchLabels: {}, matchExpressions: [] }, expected: true },
    { name: "an equal label", selector: { matchLabels: { zone: "beijing" } }, expected: true },
    { name: "two equal labels", selector: { matchLabels: { zone: "beijing", tier: "db" } }, expected: true },
    {
      name: "one equal, one other",
      selector: { matchLabels: { zone: "beijing", tier: "web" } },
      expected: false,
    },
    { name: "an absent label", selector: { matchLabels: { rack: "1" } }, expected: false },
    { name: "an empty value", selector: { matchLabels: { empty: "" } }, expected: true },
    { name: "an empty value of an absent label", selector: { matchLabels: { rack: "" } }, expected: false },
    {
      name: "a name that objects inherit",
      selector: { matchExpressions: [{ key: "constructor", operator: "Exists" }] },
      expected: false,
    },
    {
      name: "In",
      selector: { matchExpressions: [{ key: "zone", operator: "In", values: ["a", "beijing"] }] },
      expected: true,
    },
    {
      name: "In, other value",
      selector: { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] },
      expected: false,
    },
    {
      name: "In, absent",
      selector: { matchExpressions: [{ key: "rack", operator: "In", values: ["a"] }] },
      expected: false,
    },
    {
      name: "NotIn",
      selector: { matchExpressions: [{ key: "zone", operator: "NotIn", values: ["a"] }] },
      expected: true,
    },
    {
      name: "NotIn, that value",
      selector: { matchExpressions: [{ key: "zone", operator: "NotIn", values: ["beijing"] }] },
      expected: false,
    },
    {
      name: "NotIn, absent",
      selector: { matchExpressions: [{ key: "rack", operator: "NotIn", values: ["a"] }] },
      expected: true,
    },
    {
      name: "Exists",
      selector: { matchExpressions: [{ key: "empty", operator: "Exists" }] },
      expected: true,
    },
    {
      name: "Exists, absent",
      selector: { matchExpressions: [{ key: "rack", operator: "Exists" }] },
      expected: false,
    },
    {
      name: "DoesNotExist",
      selector: { matchExpressions: [{ key: "rack", operator: "DoesNotExist" }] },
      expected: true,
    },
    {
      name: "DoesNotExist, present",
      selector: { matchExpressions: [{ key: "zone", operator: "DoesNotExist" }] },
      expected: false,
    },
    {
      name: "labels and expressions, one of them wrong",
      selector: {
        matchLabels: { zone: "beijing" },
        matchExpressions: [{ key: "tier", operator: "DoesNotExist" }],
      },
      expected: false,
    },
  ] satisfies { name: string; selector: LabelSelector | undefined; expected: boolean }[]) {
    it(`${expected ? "holds for" : "fails for"} ${name}`, () =>
      assert.equal(matches(selector, labels), expected));
  }
});

describe("checkSelector", () => {
  for (const selector of [
    {},
    { matchLabels: { "topology.kubernetes.io/zone": "beijing", a: "" } },
    { matchExpressions: [{ key: "a", operator: "In", values: ["x", ""] }] },
    {
      matchExpressions: [
        { key: "a", operator: "Exists" },
        { key: "a", operator: "DoesNotExist", values: [] },
      ],
    },
  ]) {
    it(`accepts ${JSON.stringify(selector)}`, () =>
      assert.equal(checkSelector(selector, "spec.s"), undefined));
  }

  for (const { selector, message } of [
    { selector: null, message: "spec.s must be an object, not null" },
    { selector: "app=db", message: 'spec.s must be an object, not "app=db"' },
    { selector: [], message: "spec.s must be an object, not a list" },
    {
      selector: { matchlabels: {} },
      message: 'spec.s has an unknown field "matchlabels"; did you mean matchLabels?',
    },
    {
      selector: { matchLabels: { a: 1 } },
      message: 'spec.s.matchLabels["a"] 1 is not a label value: at most 63 letters, digits, -, _ or .',
    },
    {
      selector: { matchLabels: { a: "b".repeat(64) } },
      message: `spec.s.matchLabels["a"] "${"b".repeat(64)}" is not a label value: at most 63 letters, digits, -, _ or .`,
    },
    {
      selector: { matchLabels: { "a b": "c" } },
      message: 'spec.s.matchLabels "a b" is not a label key such as topology.kubernetes.io/zone',
    },
    {
      selector: { matchLabels: { "a/b/c": "c" } },
      message: 'spec.s.matchLabels "a/b/c" is not a label key such as topology.kubernetes.io/zone',
    },
    { selector: { matchExpressions: {} }, message: "spec.s.matchExpressions must be a list, not an object" },
    {
      selector: { matchExpressions: [{ key: "a" }] },
      message: "spec.s.matchExpressions[0].operator is missing",
    },
    {
      selector: { matchExpressions: [{ key: "a", operator: "Equals" }] },
      message:
        'spec.s.matchExpressions[0].operator must be one of In, NotIn, Exists, DoesNotExist, not "Equals"',
    },
    {
      selector: { matchExpressions: [{ key: "a", operator: "In" }] },
      message: "spec.s.matchExpressions[0].values must not be empty for the operator In",
    },
    {
      selector: { matchExpressions: [{ key: "a", operator: "NotIn", values: [] }] },
      message: "spec.s.matchExpressions[0].values must not be empty for the operator NotIn",
    },
    {
      selector: { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] },
      message: "spec.s.matchExpressions[0].values must be empty for the operator Exists",
    },
  ]) {
    it(`refuses ${JSON.stringify(selector).slice(0, 70)}`, () => {
      const refusal = checkSelector(selector, "spec.s");
      assert.equal(refusal?.code, "POOL_INVALID");
      assert.equal(refusal?.message, message);
    });
  }
});
