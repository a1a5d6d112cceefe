// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { MANAGED } from "./kinds.ts";
import { wrongField } from "./object-fields.ts";
import { type Json, placeOf } from "./object-ref.ts";

function wrongIn(kind: string, json: Json): string | undefined {
  const facts = MANAGED.find((known) => known.kind === kind);
  assert.ok(facts);
  return wrongField({ kind: facts, json })?.message;
}

const quotes = (shown: string) => `must be text, not ${shown}; write it in quotes`;
const IPS = "berth.dev/ips";

describe("an object that is applied", () => {
  for (const [kind, json, message] of [
    ["Pod", { metadata: { annotations: { [IPS]: 5 } } }, `metadata.annotations["${IPS}"] ${quotes("5")}`],
    [
      "Namespace",
      { metadata: { annotations: { "berth.dev/sticky": true } } },
      `metadata.annotations["berth.dev/sticky"] ${quotes("true")}`,
    ],
    ["Pod", { metadata: { labels: { tier: 2 } } }, `metadata.labels["tier"] ${quotes("2")}`],
    ["Pod", { metadata: { name: 5 } }, `metadata.name ${quotes("5")}`],
    [
      "StatefulSet",
      { spec: { template: { metadata: { annotations: { [IPS]: ["10.20.0.51"] } } } } },
      `spec.template.metadata.annotations["${IPS}"] ${quotes("a list")}`,
    ],
    ["Pod", { metadata: { annotations: [] } }, "metadata.annotations must be an object, not a list"],
    [
      "Pod",
      { metadata: { annotation: {} } },
      'metadata has an unknown field "annotation"; did you mean annotations?',
    ],
    ["Pod", { metadat: {} }, 'the Pod has an unknown field "metadat"; did you mean metadata?'],
    [
      "Pod",
      { annotations: {} },
      'the Pod has an unknown field "annotations"; known here: apiVersion, kind, metadata, spec, status',
    ],
    ["IPPool", { metadata: { lables: {} } }, 'metadata has an unknown field "lables"; did you mean labels?'],
    ["StatefulSet", { spec: { templat: {} } }, 'spec has an unknown field "templat"; did you mean template?'],
    ["StatefulSet", { spec: { replica: 2 } }, 'spec has an unknown field "replica"; did you mean replicas?'],
    [
      "Deployment",
      { spec: { replicas: "2" } },
      'spec.replicas must be a whole number from 0 to 2147483647, not "2"',
    ],
    [
      "StatefulSet",
      { spec: { ordinals: { strat: 1 } } },
      'spec.ordinals has an unknown field "strat"; did you mean start?',
    ],
    [
      "Deployment",
      { spec: { template: { annotations: {} } } },
      'spec.template has an unknown field "annotations"; known here: metadata, spec',
    ],
    [
      "Deployment",
      { spec: { template: { spec: { annotations: {} } } } },
      'spec.template.spec has an unknown field "annotations"; annotations and labels belong under metadata',
    ],
    [
      "Pod",
      { spec: { hostnetwork: true } },
      'spec has an unknown field "hostnetwork"; did you mean hostNetwork?',
    ],
    ["Pod", { spec: { hostNetwork: "true" } }, 'spec.hostNetwork must be true or false, not "true"'],
    ["Pod", { spec: [] }, "spec must be an object, not a list"],
    ["Namespace", { spec: { annotations: {} } }, /^spec has an unknown field "annotations"/],
  ] as const) {
    it(`is refused: a ${kind} with ${JSON.stringify(json)}`, () => {
      const found = wrongIn(kind, json);
      if (typeof message === "string") assert.equal(found, message);
      else assert.match(found ?? "", message);
    });
  }

  it("may leave fields out, or null", () => {
    const nothing = { metadata: null, spec: null };
    const template = { metadata: { annotations: null, labels: { tier: null } }, spec: null };
    for (const { kind } of MANAGED) {
      assert.equal(wrongIn(kind, {}), undefined);
      assert.equal(wrongIn(kind, nothing), undefined);
    }
    assert.equal(wrongIn("Deployment", { spec: { replicas: null, template } }), undefined);
  });

  it("may have fields in a pod's spec that a newer Kubernetes may know", () => {
    assert.equal(
      wrongIn("Pod", { spec: { hostname: "a", serviceAccount: "b", quantumLink: {} } }),
      undefined,
    );
  });

  it("is found, to be deleted, whatever else it says", () => {
    const [kind] = MANAGED;
    assert.ok(kind);
    const place = placeOf({ kind, json: { metadata: { name: "shop", annotation: {} } } });
    assert.ok(!isRefusal(place));
    assert.equal(place.name, "shop");
  });
});
