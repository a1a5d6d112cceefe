// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { configOf, databaseOf, writtenFiles } from "./config.ts";
import { RESULT_FOLDERS } from "./journal/runtime-records.ts";

const LEAST = { BERTH_NODE_NAME: "node-a", KUBERNETES_SERVICE_HOST: "10.96.0.1" };

function refusal(env: Readonly<Record<string, string>>): string {
  try {
    configOf(env);
  } catch (error) {
    return error instanceof BerthError ? `${error.code}: ${error.message}` : String(error);
  }
  return "none";
}

describe("the agent's environment", () => {
  it("needs no more than the node's name in a pod", () => {
    const config = configOf(LEAST);
    assert.deepEqual(config, {
      node: "node-a",
      socketPath: "/run/berth/agent.sock",
      dataDir: "/var/lib/berth",
      listen: { host: "127.0.0.1", port: 9469 },
      logLevel: "info",
      dialects: OWN_OF_EACH,
      refusalsNameAll: false,
      unreviewedPods: false,
      resultFolders: RESULT_FOLDERS,
      api: { host: "10.96.0.1", port: "443" },
    });
    assert.equal(databaseOf(config), "/var/lib/berth/agent.db");
  });

  it("says everything", () => {
    const config = configOf({
      BERTH_NODE_NAME: "node-a.example.org",
      BERTH_SOCKET: "/a/b.sock",
      BERTH_DATA: "/data/",
      BERTH_HOST: "::",
      BERTH_PORT: "0",
      BERTH_CNI_BIN: "/host/cni/bin/",
      BERTH_CNI_BINARY: "/opt/berth/bin/berth",
      BERTH_CNI_ALIASES: "whereabouts,static-ipam",
      BERTH_CNI_REPLACE: "true",
      BERTH_CNI_CONF: "/host/cni/net.d",
      BERTH_CNI_RESULTS: "/host/results:/host/others/",
      BERTH_CONFLIST: "/etc/berth/05-berth.conflist",
      BERTH_REFUSALS_NAME: "All",
      BERTH_FAILURE_POLICY: "Ignore",
      BERTH_KUBECONFIG: "/etc/kubeconfig",
      BERTH_LOG_LEVEL: "debug",
    });
    assert.deepEqual(config, {
      node: "node-a.example.org",
      socketPath: "/a/b.sock",
      dataDir: "/data",
      listen: { host: "::", port: 0 },
      logLevel: "debug",
      dialects: OWN_OF_EACH,
      refusalsNameAll: true,
      unreviewedPods: true,
      plugin: { from: "/opt/berth/bin/berth", folder: "/host/cni/bin" },
      aliases: { names: ["whereabouts", "static-ipam"], replace: true },
      conflist: { from: "/etc/berth/05-berth.conflist", folder: "/host/cni/net.d" },
      resultFolders: ["/host/results", "/host/others"],
      api: { kubeconfig: "/etc/kubeconfig" },
    });
  });

  it("installs the plugin that was built here, and no conflist that it was not given", () => {
    const { plugin, conflist } = configOf({
      ...LEAST,
      BERTH_CNI_BIN: "/host/cni/bin",
      BERTH_CNI_CONF: "/host/cni/net.d",
    });
    assert.match(plugin?.from ?? "", /[/]build[/]berth$/);
    assert.equal(conflist, undefined);
  });

  for (const [name, env, words] of [
    [
      "no node",
      { ...LEAST, BERTH_NODE_NAME: "" },
      "BERTH_NODE_NAME is not set; give it the name of this node",
    ],
    [
      "a node of no name",
      { ...LEAST, BERTH_NODE_NAME: "a=b,c" },
      'BERTH_NODE_NAME is "a=b,c", which no node can be called',
    ],
    [
      "no cluster",
      { BERTH_NODE_NAME: "a" },
      "BERTH_KUBECONFIG is not set, and this is no pod of a cluster; give it a kubeconfig",
    ],
    [
      "a host of no address",
      { ...LEAST, BERTH_HOST: "localhost" },
      'BERTH_HOST is "localhost"; give it an IP address of this host',
    ],
    [
      "no port",
      { ...LEAST, BERTH_PORT: "65536" },
      'BERTH_PORT is "65536", which is no port; give it a number up to 65535',
    ],
    [
      "a conflist that goes nowhere",
      { ...LEAST, BERTH_CONFLIST: "/etc/berth/a.conflist" },
      "BERTH_CNI_CONF is not set; give it the folder that BERTH_CONFLIST is written to",
    ],
    [
      "a conflist that no runtime would read as one",
      { ...LEAST, BERTH_CONFLIST: "/etc/berth/a.conf", BERTH_CNI_CONF: "/host/cni/net.d" },
      'BERTH_CONFLIST is "/etc/berth/a.conf"; its name must end with .conflist',
    ],
    [
      "a name that no plugin has whose networks it reads",
      { ...LEAST, BERTH_CNI_ALIASES: "static,dhcp" },
      'BERTH_CNI_ALIASES has "dhcp"; give it some of host-local, static, etcd, ipam-etcd, whereabouts, antrea, spiderpool, calico-ipam, kube-ipam, static-ipam',
    ],
    [
      "half a word",
      { ...LEAST, BERTH_CNI_REPLACE: "yes" },
      'BERTH_CNI_REPLACE is "yes"; give it true or false',
    ],
    [
      "no level",
      { ...LEAST, BERTH_LOG_LEVEL: "loud" },
      'BERTH_LOG_LEVEL is "loud"; give it one of debug, info, warn, error, silent',
    ],
  ] as const) {
    it(`refuses ${name}`, () => {
      assert.equal(refusal(env), `CONFIG_INVALID: ${words}`);
    });
  }
});

describe("the files that an agent writes", () => {
  it("are those that its environment asks for, and its mark", () => {
    assert.deepEqual(writtenFiles(configOf(LEAST)), ["/run/berth/agent.sock.journal"]);
    const env = {
      ...LEAST,
      BERTH_CNI_BIN: "/host/cni/bin",
      BERTH_CNI_ALIASES: "whereabouts",
      BERTH_CONFLIST: "/mounted/05-berth.conflist",
      BERTH_CNI_CONF: "/host/cni/net.d",
    };
    assert.deepEqual(writtenFiles(configOf(env)), [
      "/host/cni/bin/berth",
      "/host/cni/bin/whereabouts",
      "/host/cni/net.d/05-berth.conflist",
      "/var/lib/berth/conflist.json",
      "/run/berth/agent.sock.journal",
    ]);
  });
});
