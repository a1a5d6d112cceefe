// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { ASSIGNED } from "../../allocator/manifest/opt-in.ts";
import { OWN_PREFIX, OWN_REQUESTS } from "../../allocator/manifest/own-keys.ts";
import { BERTH_NAMESPACE, manifestsOf } from "./accounts.ts";
import { ASKING, SYSTEM, WARNS } from "./chart-policies.ts";
import { configuration } from "./webhooks.ts";

interface Policy {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly failurePolicy?: string;
    readonly policyName?: string;
    readonly validationActions?: readonly string[];
    readonly matchConstraints?: { readonly namespaceSelector?: unknown };
    readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
    readonly validations?: readonly { readonly reason?: string; readonly message?: string }[];
    readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  };
}

const ALL = manifestsOf("policies") as unknown as readonly Policy[];
const POLICIES = ALL.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");

function policy(name: string): Policy["spec"] {
  return POLICIES.find(({ metadata }) => metadata.name === name)?.spec ?? assert.fail(name);
}

function quoted(expression = ""): string[] {
  return [...expression.matchAll(/'([\w-]+[./][^']+)'/g)].map(([, key = ""]) => key);
}

describe("the chart's policies", () => {
  it("deny but for two that only warn, are bound, and answer as a webhook does", () => {
    const bindings = ALL.filter(({ kind }) => kind === "ValidatingAdmissionPolicyBinding");
    assert.deepEqual(
      bindings.map(({ spec }) => [spec.policyName, spec.validationActions]),
      POLICIES.map(({ metadata: { name } }) => [name, [[WARNS, SYSTEM].includes(name) ? "Warn" : "Deny"]]),
    );
    for (const { metadata, spec } of POLICIES) {
      const isOpen = ["pool-access.berth.dev", WARNS, SYSTEM].includes(metadata.name);
      assert.equal(spec.failurePolicy, isOpen ? "Ignore" : "Fail", metadata.name);
      // 403, which clients and Berth itself take for a refusal; 422 would be a defect of the object
      for (const { reason } of spec.validations ?? []) assert.equal(reason, "Forbidden", metadata.name);
    }
  });

  it("know the pods that the webhook configurations know", () => {
    const mutating = configuration("mutating").webhooks;
    const [entry] = mutating;
    const conditions = (name: string, of = policy("pods.berth.dev").matchConditions) =>
      of?.find((one) => one.name === name)?.expression;
    for (const name of ["network-of-its-own", "no-mirror-pod"]) {
      assert.equal(conditions(name), conditions(name, entry?.matchConditions), name);
    }
    const { variables = [], matchConstraints } = policy("pods.berth.dev");
    const keys = variables
      .filter(({ name }) => name === "asks" || name === "optedIn")
      .flatMap((one) => quoted(one.expression))
      .filter((key) => key !== OWN_PREFIX);
    const known = [...OWN_REQUESTS, ...ASKING.map(({ key }) => key), ...ASSIGNED, "berth.dev/admission"];
    assert.deepEqual([...new Set(keys)].sort(), known.sort());
    const elsewhere = {
      key: "kubernetes.io/metadata.name",
      operator: "NotIn",
      values: [EXEMPT_NAMESPACE, BERTH_NAMESPACE],
    };
    assert.deepEqual(matchConstraints?.namespaceSelector, { matchExpressions: [elsewhere] });
    const [changes] = policy("changes.pods.berth.dev").matchConditions ?? [];
    const inPolicy = new Set(quoted(changes?.expression));
    for (const key of [...ASSIGNED, OWN_PREFIX, ...ASKING.map((row) => row.key)])
      assert.ok(inPolicy.has(key), key);
  });
});
