// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OWN_OF_EACH } from "../allocator/model/dialect.ts";
import { configOf } from "./config.ts";
import { TRUSTED_CLIENTS } from "./http/client-check.ts";

const LEAST = { BERTH_NAMESPACE: "berth-system", KUBERNETES_SERVICE_HOST: "10.96.0.1" };

describe("the webhook's environment", () => {
  it("says little in a pod", () => {
    assert.deepEqual(configOf({ ...LEAST, BERTH_POD_NAME: "", BERTH_KUBECONFIG: "" }, "berth-7f9c"), {
      namespace: "berth-system",
      podName: "berth-7f9c",
      port: 8443,
      certificates: "/etc/berth/tls",
      departMs: 5_000,
      trusted: TRUSTED_CLIENTS,
      reviewersBy: "nothing",
      refusalsNameAll: false,
      checkOwners: false,
      boundEvents: false,
      foreignRequests: "warn",
      nodeCIDRs: [],
      dialects: OWN_OF_EACH,
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
      BERTH_REVIEWERS_BY: "ClosedElsewhere",
      BERTH_CHECK_OWNERS: "true",
      BERTH_BOUND_EVENTS: "true",
      BERTH_NODE_CIDRS: "IPv6, IPv4",
      BERTH_CILIUM_IPAM: "multi-pool",
    };
    assert.deepEqual(configOf(env, "host"), {
      namespace: "berth-system",
      podName: "berth-0",
      host: "127.0.0.1",
      port: 0,
      certificates: "/tmp/tls",
      trusted: TRUSTED_CLIENTS,
      reviewersBy: "ClosedElsewhere",
      refusalsNameAll: false,
      checkOwners: true,
      boundEvents: true,
      foreignRequests: "warn",
      nodeCIDRs: ["IPv6", "IPv4"],
      cilium: "multi-pool",
      dialects: OWN_OF_EACH,
      api: { kubeconfig: "/tmp/kubeconfig" },
      departMs: 1_500,
      logLevel: "debug",
    });
  });

  it("takes one of three words for what other systems are asked", () => {
    const { dialects } = configOf({ ...LEAST, BERTH_DIALECTS: "calico=all,kubeOvn=none" }, "host");
    assert.deepEqual(dialects, { ...OWN_OF_EACH, calico: "all", kubeOvn: "none" });
    for (const given of ["calico", "calico=some", "tigera=own"])
      assert.throws(() => configOf({ ...LEAST, BERTH_DIALECTS: given }, "host"), {
        message: `BERTH_DIALECTS is "${given}"; give it a list such as calico=all,kubeOvn=none of calico, kubeOvn, antrea, spiderpool, hybridnet, cilium, multus, staticIpam, kubeIpam`,
      });
    assert.equal(configOf({ ...LEAST, BERTH_FOREIGN_REQUESTS: "refuse" }, "host").foreignRequests, "refuse");
    assert.throws(() => configOf({ ...LEAST, BERTH_FOREIGN_REQUESTS: "no" }, "host"), {
      message: 'BERTH_FOREIGN_REQUESTS is "no"; give it warn, refuse or ignore',
    });
  });

  it("serves what Berth's issuer makes when it names a secret", () => {
    const { issued } = configOf({ ...LEAST, BERTH_TLS_SECRET: "berth-webhook-tls" }, "host");
    assert.deepEqual(issued, { secret: "berth-webhook-tls", service: "berth-webhook" });
    const other = configOf({ ...LEAST, BERTH_TLS_SECRET: "tls", BERTH_SERVICE: "berth" }, "host").issued;
    assert.deepEqual(other, { secret: "tls", service: "berth" });
    assert.equal(configOf({ ...LEAST, BERTH_SERVICE: "berth" }, "host").issued, undefined);
  });

  it("takes the authority of clients by its whole path", () => {
    assert.equal(
      configOf({ ...LEAST, BERTH_CLIENT_CA: "/tmp/ca/../ca.crt" }, "host").clientAuthority,
      "/tmp/ca.crt",
    );
  });

  it("says which clients may send reviews, by name and organization", () => {
    assert.deepEqual(configOf(LEAST, "host").trusted, TRUSTED_CLIENTS);
    const given = { BERTH_CLIENT_NAMES: "a, system:b", BERTH_CLIENT_ORGANIZATIONS: "c" };
    assert.deepEqual(configOf({ ...LEAST, ...given }, "host").trusted, {
      names: ["a", "system:b"],
      organizations: ["c"],
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
      const words = `BERTH_DEPART is "${depart}"; give it a duration such as 5s, 1m at most`;
      wrong({ BERTH_DEPART: depart }, words);
    }
    wrong(
      { BERTH_LOG_LEVEL: "loud" },
      'BERTH_LOG_LEVEL is "loud"; give it one of debug, info, warn, error, silent',
    );
  });
});
