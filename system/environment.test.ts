// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { apiServerOf, envString, logLevelOf, portOf } from "./environment.ts";

const refused = (variable: string, why: string) => ({
  code: "CONFIG_INVALID",
  message: `${variable} ${why}`,
  details: { variable },
});

describe("what processes are told by their environment", () => {
  it("is absent when it is empty", () => {
    assert.equal(envString({ BERTH_X: "" }, "BERTH_X", "y"), "y");
    assert.equal(envString({}, "BERTH_X"), "");
    assert.equal(envString({ BERTH_X: "z" }, "BERTH_X", "y"), "z");
  });

  it("is a port, or the usual one", () => {
    assert.equal(portOf({}, 8443), 8443);
    assert.equal(portOf({ BERTH_PORT: "0" }, 8443), 0);
    assert.equal(portOf({ BERTH_PORT: "65535" }, 8443), 65_535);
    for (const given of ["65536", "-1", "http", "1e3", " 1"]) {
      const why = `is ${JSON.stringify(given)}, which is no port; give it a number up to 65535`;
      assert.throws(() => portOf({ BERTH_PORT: given }, 8443), refused("BERTH_PORT", why));
    }
  });

  it("is how much is logged", () => {
    assert.equal(logLevelOf({}), "info");
    assert.equal(logLevelOf({ BERTH_LOG_LEVEL: "debug" }), "debug");
    const why = 'is "loud"; give it one of debug, info, warn, error, silent';
    assert.throws(() => logLevelOf({ BERTH_LOG_LEVEL: "loud" }), refused("BERTH_LOG_LEVEL", why));
  });

  it("is where the API server is, in a pod and outside the cluster", () => {
    const pod = { KUBERNETES_SERVICE_HOST: "10.0.0.1" };
    assert.deepEqual(apiServerOf(pod), { host: "10.0.0.1", port: "443" });
    const other = { ...pod, KUBERNETES_SERVICE_PORT: "6443" };
    assert.deepEqual(apiServerOf(other), { host: "10.0.0.1", port: "6443" });
    assert.deepEqual(apiServerOf({ ...pod, BERTH_KUBECONFIG: "/berth.conf" }), { kubeconfig: "/berth.conf" });
    const why = "is not set, and this is no pod of a cluster; give it a kubeconfig";
    assert.throws(() => apiServerOf({}), refused("BERTH_KUBECONFIG", why));
  });
});
