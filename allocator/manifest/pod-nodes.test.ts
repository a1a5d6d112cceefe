// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Fields } from "./kubernetes-object.ts";
import { nodeTermsOf } from "./pod-nodes.ts";

function termsOf(count: number, values: number) {
  const expression = {
    key: "zone",
    operator: "NotIn",
    values: Array.from({ length: values }, (_, n) => `z${n}`),
  };
  const nodeSelectorTerms = Array.from({ length: count }, () => ({ matchExpressions: [expression] }));
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  return nodeTermsOf(new Fields({ affinity: { nodeAffinity } }));
}

describe("the nodes of a pod's spec", () => {
  it("are any where there is more to compare than any pod needs", () => {
    assert.equal(termsOf(1, 1023)?.length, 1);
    assert.equal(termsOf(512, 1)?.length, 512);
    assert.equal(termsOf(1, 1024), undefined);
    assert.equal(termsOf(513, 1), undefined);
  });
});
