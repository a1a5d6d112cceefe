// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { NETWORKS } from "./network-attachments.ts";
import { unmadeInterfaces } from "./unmade-interfaces.ts";

const IPS = "berth.dev/ips";

it("tells interfaces that addresses are asked for on and no network makes", () => {
  const two = { [IPS]: "10.30.0.94,10.40.0.99@net7", [NETWORKS]: "lan" };
  assert.deepEqual(unmadeInterfaces(two, false), [
    "addresses are asked for on net7, and the pod's networks make net1: they are kept and not used unless the runtime makes that interface by itself",
  ]);
  const bare = { "berth.dev/sticky": "eth0,net1" };
  assert.match(
    unmadeInterfaces(bare, false).join(),
    /^addresses are asked for on net1, and the pod has no k8s\.v1\./,
  );
  assert.equal(unmadeInterfaces({ [IPS]: "10.40.0.99@net1", [NETWORKS]: "lan@net5" }, true).length, 1);
});

it("tells nothing of what a network makes, or may make", () => {
  for (const [annotations, fromRuntime] of [
    [{ [IPS]: "10.30.0.94,10.40.0.99@net1", [NETWORKS]: "lan" }, false],
    [{ [IPS]: "10.40.0.99@data0", [NETWORKS]: "lan@data0" }, false],
    [{ [IPS]: "10.30.0.94,10.40.0.99@eth1" }, false], // max_conf_num
    [{ [IPS]: "10.30.0.94,10.40.0.99@net1" }, true],
    [{ [IPS]: "10.30.0.94" }, false],
    [{}, false],
  ] as const)
    assert.deepEqual(unmadeInterfaces(annotations, fromRuntime), [], JSON.stringify(annotations));
});
