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
      api: { host: "10.96.0.1", port: "443" },
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
      api: { kubeconfig: "/tmp/kubeconfig" },
      departMs: 1_500,
      logLevel: "debug",
    });
  });

  it("makes Berth its own authority when it names a secret", () => {
    const { issuing } = configOf({ ...LEAST, BERTH_TLS_SECRET: "berth-webhook-tls" }, "host");
    const [hour, day] = [3_600_000, 86_400_000];
    assert.deepEqual(issuing, {
      ...{ secret: "berth-webhook-tls", service: "berth-webhook" },
      ...{ leafMs: 90 * day, authorityMs: 3_650 * day },
    });
    const lives = { BERTH_LEAF_LIFE: "1h", BERTH_AUTHORITY_LIFE: "3h", BERTH_SERVICE: "berth" };
    const short = configOf({ ...LEAST, BERTH_TLS_SECRET: "tls", ...lives }, "host").issuing;
    assert.deepEqual(short, { secret: "tls", service: "berth", leafMs: hour, authorityMs: 3 * hour });
    assert.equal(configOf({ ...LEAST, ...lives }, "host").issuing, undefined);
    assert.equal(
      configOf({ ...LEAST, BERTH_CLIENT_CA: "/tmp/ca/../ca.crt" }, "host").clientAuthority,
      "/tmp/ca.crt",
    );
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
    const own = { BERTH_TLS_SECRET: "tls", BERTH_LEAF_LIFE: "1h" };
    const least = "; give it a duration such as 2160h,";
    wrong({ ...own, BERTH_LEAF_LIFE: "4s" }, `BERTH_LEAF_LIFE is "4s"${least} 5s at least`);
    wrong({ ...own, BERTH_LEAF_LIFE: "90d" }, `BERTH_LEAF_LIFE is "90d"${least} 5s at least`);
    wrong(
      { ...own, BERTH_AUTHORITY_LIFE: "2h59m" },
      `BERTH_AUTHORITY_LIFE is "2h59m"${least} 3h0m0s at least`,
    );
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
