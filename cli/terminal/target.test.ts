// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { describe, it } from "node:test";
import { type EnvDefaults, NO_CLUSTER, targetOf } from "./target.ts";

const HOME = "/home/alice/.kube/config";
const BARE: EnvDefaults = { ...NO_CLUSTER, dataNamed: false };
const folder = (used: boolean) => ({ dataDir: "/data", used: () => used });

describe("placeOf", () => {
  for (const [what, asked, setting, used, place] of [
    ["--data", { data: "x" }, { kubeconfigNamed: true, kubeconfigs: [HOME] }, false, "data"],
    ["--kubeconfig", { kubeconfig: "k" }, { dataNamed: true }, true, [resolve("k")]],
    ["--context", { context: "prod" }, { dataNamed: true, kubeconfigs: [HOME] }, true, [HOME]],
    ["BERTH_DATA before KUBECONFIG", {}, { dataNamed: true, kubeconfigNamed: true }, false, "data"],
    ["KUBECONFIG before a folder in use", {}, { kubeconfigNamed: true, kubeconfigs: ["/k"] }, true, ["/k"]],
    ["a folder in use before ~/.kube/config", {}, { kubeconfigs: [HOME] }, true, "data"],
    ["~/.kube/config", {}, { kubeconfigs: [HOME] }, false, [HOME]],
    ["the account of this pod", {}, { inCluster: true }, false, []],
    ["kubectl, whatever is there", {}, { kubectl: true, dataNamed: true, kubeconfigs: [HOME] }, true, [HOME]],
  ] as const) {
    it(`takes ${what}`, () => {
      const found = targetOf(asked, { ...BARE, ...setting }, folder(used));
      assert.deepEqual(found === undefined ? "data" : found.kubeconfigs, place);
    });
  }

  it("hands the context on", () => {
    const way = targetOf({ context: "prod" }, { ...BARE, kubeconfigs: [HOME] }, folder(true));
    assert.deepEqual(way, { kubeconfigs: [HOME], context: "prod" });
  });

  it("says what to do when there is nothing", () => {
    assert.throws(() => targetOf({}, BARE, folder(false)), {
      code: "STORE_UNAVAILABLE",
      message:
        "there is nothing in /data yet and no kubeconfig; start a stack with: berthctl up --data /data, or name a cluster with --kubeconfig FILE",
    });
    assert.throws(() => targetOf({}, { ...BARE, kubectl: true }, folder(true)), {
      message: "there is no kubeconfig; name one with --kubeconfig FILE, or set KUBECONFIG",
    });
  });

  it("does not guess between a folder and a cluster", () => {
    assert.throws(() => targetOf({ data: "x", context: "prod" }, BARE, folder(true)), {
      message: "give --data for a data folder, or --kubeconfig and --context for a cluster, not both",
    });
    assert.throws(() => targetOf({ data: "x" }, { ...BARE, kubectl: true }, folder(true)), {
      message: "kubectl berth is for the cluster and has no --data; use berthctl for a data folder",
    });
  });
});
