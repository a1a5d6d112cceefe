// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Json, workload } from "../../test/support/objects.ts";
import { object } from "../testing/pod-with.ts";
import { isThereSo, replicasAfter } from "./unchanged-workload.ts";

const ASKING = { "berth.dev/ips": "10.20.0.71" };
const STRATEGY = { rollingUpdate: { maxSurge: 1 } };

function web(spec: Json, of: Json = {}, over: Json = {}) {
  const template = { metadata: { annotations: ASKING }, spec: of };
  return object(workload("Deployment", "web", { replicas: 2, spec: { template, ...spec }, ...over }));
}

describe("a workload that is there", () => {
  const there = web(
    {
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: "25%" } },
      minReadySeconds: 0,
      paused: null,
    },
    { containers: [{ name: "app", image: "app:1" }], tolerations: [{ key: "a", effect: "x" }] },
  );

  it("is as it is said to be, whatever an API server has added and a review does not read", () => {
    for (const one of [
      web({}),
      web({ strategy: STRATEGY, paused: true, progressDeadlineSeconds: null }),
      web({}, { containers: [{ name: "app", image: "app:2" }], tolerations: [{ key: "a" }] }),
    ])
      assert.equal(isThereSo(one, there, "cluster"), true, JSON.stringify(one.spec.value));
  });

  it("is not where the update would change what admission compares", () => {
    for (const one of [
      web({ minReadySeconds: 5 }),
      web({ strategy: { rollingUpdate: { maxSurge: 2 } } }),
      web({ strategy: null }),
      web({ progressDeadlineSeconds: 5 }),
      web({}, { tolerations: [{ key: "a" }, { key: "b" }] }),
      web({}, { tolerations: {} }),
      web({}, {}, { replicas: 3 }),
      web({ template: { spec: {} } }),
    ])
      assert.equal(isThereSo(one, there, "cluster"), false, JSON.stringify(one.spec.value));
  });

  it("is not where it is another system's of that kind and name", () => {
    const apps = object(workload("StatefulSet", "web", { replicas: 2 }));
    const kruise = { ...apps, apiVersion: "apps.kruise.io/v1beta1" };
    assert.deepEqual([isThereSo(apps, apps, "cluster"), isThereSo(apps, kruise, "cluster")], [true, false]);
  });

  it("is not on a host where its labels change", () => {
    const labelled = web({}, {}, { own: { "a/b": "c" } });
    assert.equal(isThereSo(labelled, there, "cluster"), true);
    assert.equal(isThereSo(labelled, there, "data"), false);
  });

  it("keeps as many pods as it has where the file does not say how many, but on a host", () => {
    const silent = web({}, {}, { replicas: undefined });
    const scaled = web({}, {}, { replicas: 5 });
    assert.deepEqual(
      [replicasAfter(silent, scaled, "cluster"), isThereSo(silent, scaled, "cluster")],
      [5, true],
    );
    assert.deepEqual([replicasAfter(silent, scaled, "data"), isThereSo(silent, scaled, "data")], [1, false]);
    assert.equal(replicasAfter(silent, undefined, "cluster"), 1);
    assert.equal(replicasAfter(web({}), scaled, "cluster"), 2);
  });
});
