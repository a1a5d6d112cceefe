// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configOf } from "./config.ts";

const LEAST = { BERTH_NAMESPACE: "berth-system", KUBERNETES_SERVICE_HOST: "10.96.0.1" };

describe("the webhook's environment", () => {
  it("says little in a pod", () => {
    assert.deepEqual(configOf({ ...LEAST, BERTH_POD_NAME: "", BERTH_KUBECONFIG: "" }, "berth-7f9c"), {
      namespace: "berth-system",
      podName: "berth-7f9c",
      host: "::",
      port: 8443,
      certificates: "/etc/berth/tls",
      departMs: 5_000,
      logLevel: "info",
    });
  });

  it("says everything elsewhere", () => {
    const env = {
      ...LEAST,
      BERTH_POD_NAME: "berth-0",
      BERTH_HOST: "127.0.0.1",
      BERTH_PORT: "0",
      BERTH_TLS: "/tmp/tls/",
      BERTH_KUBECONFIG: "/tmp/kubeconfig",
      BERTH_DEPART: "1500ms",
      BERTH_LOG_LEVEL: "debug",
    };
    assert.deepEqual(configOf(env, "host"), {
      namespace: "berth-system",
      podName: "berth-0",
      host: "127.0.0.1",
      port: 0,
      certificates: "/tmp/tls",
      kubeconfig: "/tmp/kubeconfig",
      departMs: 1_500,
      logLevel: "debug",
    });
  });

  it("is refused by the name of the variable, with what to write instead", () => {
    const wrong = (env: Record<string, string>, message: string) =>
      assert.throws(() => configOf({ ...LEAST, ...env }, "host"), { code: "CONFIG_INVALID", message });
    wrong({ BERTH_NAMESPACE: "" }, "BERTH_NAMESPACE is not set; give it the namespace that berth runs in");
    wrong(
      { KUBERNETES_SERVICE_HOST: "" },
      "BERTH_KUBECONFIG is not set, and this is no pod of a cluster; give it a kubeconfig",
    );
    for (const port of ["https", "65536", "-1", "8443 "]) {
      const words = `BERTH_PORT is ${JSON.stringify(port)}, which is no port; give it a number up to 65535`;
      wrong({ BERTH_PORT: port }, words);
    }
    for (const depart of ["5", "-5s", "61s"]) {
      const words = `BERTH_DEPART is "${depart}"; give it a duration such as 5s, 1m0s at most`;
      wrong({ BERTH_DEPART: depart }, words);
    }
    wrong(
      { BERTH_LOG_LEVEL: "loud" },
      'BERTH_LOG_LEVEL is "loud"; give it one of debug, info, warn, error, silent',
    );
  });
});
