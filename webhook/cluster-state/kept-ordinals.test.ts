// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  hasUnreadOrdinals,
  MAX_RESERVED_ORDINALS,
  reservedOrdinalsOf,
} from "../../allocator/manifest/reserved-ordinals.ts";
import type { Resource } from "../../kube/api/resource.ts";
import { observedWorkload } from "./projections.ts";

const setsOf = (group: string): Resource => ({
  ...{ group, version: "v1beta1", plural: "statefulsets", kind: "StatefulSet", namespaced: true },
});
const keptOf = (group: string, spec: object) => {
  const metadata = { name: "db", namespace: "shop", uid: "u", resourceVersion: "1" };
  return observedWorkload(setsOf(group), { metadata, ...{ spec } }).object.spec;
};

describe("what is kept in memory of an OpenKruise StatefulSet's reserveOrdinals", () => {
  it("is as long as what is read of it, and read as it was written", () => {
    const long = "7".repeat(1_000_000);
    const reserveOrdinals: unknown[] = [
      3,
      "5-9",
      long,
      { [long]: long },
      [long],
      { toString: 1 },
      null,
      "11",
    ];
    const kept = keptOf("apps.kruise.io", { replicas: 3, reserveOrdinals });
    assert.ok(JSON.stringify(kept.value).length < 500);
    assert.deepEqual(
      reservedOrdinalsOf(kept).map(({ from, to }) => [from, to]),
      [
        [3, 3],
        [5, 9],
        [11, 11],
      ],
    );
  });

  it("says that there is more than is read, and not what", () => {
    const reserveOrdinals = Array.from({ length: 100_000 }, (_, n) => 2 * n);
    const kept = keptOf("apps.kruise.io", { replicas: 3, reserveOrdinals });
    assert.equal(kept.list("reserveOrdinals").length, MAX_RESERVED_ORDINALS + 1);
    assert.ok(hasUnreadOrdinals(kept));
    const most = { reserveOrdinals: reserveOrdinals.slice(0, MAX_RESERVED_ORDINALS) };
    assert.ok(!hasUnreadOrdinals(keptOf("apps.kruise.io", most)));
  });

  it("is nothing of a StatefulSet of Kubernetes', nor of how pods are replaced", () => {
    const spec = { replicas: 3, reserveOrdinals: [1], updateStrategy: { type: "OnDelete" } };
    assert.deepEqual(Object.keys(keptOf("apps", spec).value), ["replicas", "template"]);
  });
});
