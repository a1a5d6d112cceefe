// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { it } from "node:test";
import { configOf, settingOf } from "./config.ts";

const ALICE = { uid: 1000, username: "alice", homedir: "/home/alice" };
const ROOT = { uid: 0, username: "root", homedir: "/root" };

it("takes a folder of the system for root and one at home for others", () => {
  assert.deepEqual(configOf({}, ROOT), { dataDir: "/var/lib/berth", user: "root" });
  assert.deepEqual(configOf({}, ALICE), { dataDir: "/home/alice/.local/share/berth", user: "alice" });
});

it("takes HOME for home, as for the kubeconfig", () => {
  const env = { HOME: "/tmp/elsewhere" };
  assert.equal(configOf(env, ALICE).dataDir, "/tmp/elsewhere/.local/share/berth");
  assert.equal(configOf(env, ROOT).dataDir, "/var/lib/berth");
});

it("lets BERTH_DATA choose, as an absolute path", () => {
  assert.equal(configOf({ BERTH_DATA: "/srv/berth" }, ROOT).dataDir, "/srv/berth");
  assert.equal(configOf({ BERTH_DATA: "data" }, ALICE).dataDir, resolve("data"));
});

it("takes an empty BERTH_DATA for none", () => {
  assert.equal(configOf({ BERTH_DATA: "" }, ROOT).dataDir, "/var/lib/berth");
});

it("knows the name that it was called by, and the kubeconfigs", () => {
  const nothing = () => false;
  assert.deepEqual(settingOf({}, ALICE, nothing), {
    kubectl: false,
    dataNamed: false,
    kubeconfigNamed: false,
    kubeconfigs: [],
    inCluster: false,
  });
  const env = { BERTHCTL_CALLED: "kubectl-berth", BERTH_DATA: "x", KUBECONFIG: "/a::/b", HOME: "/root" };
  assert.deepEqual(settingOf(env, ALICE, nothing), {
    kubectl: true,
    dataNamed: true,
    kubeconfigNamed: true,
    kubeconfigs: ["/a", "/b"],
    inCluster: false,
  });
  const there =
    (...paths: readonly string[]) =>
    (path: string) =>
      paths.includes(path);
  assert.deepEqual(settingOf({}, ALICE, there("/home/alice/.kube/config")).kubeconfigs, [
    "/home/alice/.kube/config",
  ]);
  const token = there("/var/run/secrets/kubernetes.io/serviceaccount/token");
  assert.equal(settingOf({ KUBERNETES_SERVICE_HOST: "10.96.0.1" }, ALICE, token).inCluster, true);
  assert.equal(settingOf({}, ALICE, token).inCluster, false);
});
