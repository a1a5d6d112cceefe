// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { pod } from "../../test/support/objects.ts";
import { reportedAddresses } from "./reported-addresses.ts";

const KEY = "k8s.v1.cni.cncf.io/network-status";

function reported(annotations: Readonly<Record<string, string>>, podIPs: readonly object[]) {
  const object = readObject({ ...pod("a", { annotations }), status: { podIPs } });
  assert.ok(!isRefusal(object));
  return [...reportedAddresses(object)];
}

describe("addresses that others report of a pod", () => {
  it("are kubelet's of the first interface, and Multus' of the others", () => {
    const networks = [
      { name: "cluster", interface: "eth0", ips: ["10.20.0.51"] },
      { name: "shop/lan", interface: "net1", ips: ["10.30.0.51", "fd00:30:0::51"] },
    ];
    assert.deepEqual(reported({ [KEY]: JSON.stringify(networks) }, [{ ip: "10.20.0.51" }]), [
      "10.20.0.51",
      "10.30.0.51",
      "fd00:30::51",
    ]);
  });

  it("are none where nobody says any, or nobody can read them", () => {
    assert.deepEqual(reported({}, []), []);
    for (const text of ["[", "{}", '[{"ips":"10.30.0.51"}]', '[7,{"ips":[7]}]', "x".repeat(70_000)])
      assert.deepEqual(reported({ [KEY]: text }, [{}, { ip: "x" }]), []);
  });
});
