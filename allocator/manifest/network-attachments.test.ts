// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DEFAULT_NETWORK, networkAttachments, networksObjection } from "./network-attachments.ts";

const KEY = "k8s.v1.cni.cncf.io/networks";

/** `network interface` of each. */
function read(value: string, more: Readonly<Record<string, string>> = {}): string[] {
  return networkAttachments({ [KEY]: value, ...more }, "shop").map(
    (one) => `${one.network} ${one.interface}`,
  );
}

describe("the network attachments of a pod", () => {
  it("are those of the short form, in their order", () => {
    assert.deepEqual(read("net-a, lab/net-b@data0,net-c"), [
      "shop/net-a net1",
      "lab/net-b data0",
      "shop/net-c net3",
    ]);
  });

  it("are those of the JSON form", () => {
    const items = [
      { name: "net-a" },
      { name: "net-b", namespace: "lab", interface: "data0" },
      { name: "net-a" },
    ];
    assert.deepEqual(read(JSON.stringify(items)), ["shop/net-a net1", "lab/net-b data0", "shop/net-a net3"]);
  });

  it("begin with what takes the place of the cluster's network", () => {
    assert.deepEqual(read("net-a", { "v1.multus-cni.io/default-network": "kube-system/cilium" }), [
      "kube-system/cilium eth0",
      "shop/net-a net1",
    ]);
  });

  it("are none where nothing can be read", () => {
    for (const value of ["", " ", "[", "{}", "[1, {}]", "[null]"]) assert.deepEqual(read(value), [], value);
  });

  it("are not read where there are more than any pod can use, and that is said", () => {
    const long = "a".repeat(64 * 1024 + 1);
    const many = Array.from({ length: 65 }, (_, n) => `n${n}`);
    const [tooLong, tooMany] = ["it is longer than 65536 characters", "it names more than 64 networks"];
    const kinds: readonly (readonly [string, string])[] = [
      [long, tooLong],
      [`[${" ".repeat(64 * 1024)}]`, tooLong],
      [many.join(), tooMany],
      [JSON.stringify(many.map((name) => ({ name }))), tooMany],
    ];
    for (const key of [KEY, DEFAULT_NETWORK]) {
      for (const [value, why] of kinds) {
        assert.deepEqual(networkAttachments({ [key]: value }, "shop"), []);
        assert.equal(networksObjection({ [key]: value })?.message, `annotation ${key}: ${why}`);
      }
      const most = many.slice(1).join();
      assert.equal(networksObjection({ [key]: most }), undefined);
    }
    assert.equal(read(many.slice(1).join()).length, 64);
  });
});
