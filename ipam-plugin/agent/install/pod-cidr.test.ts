// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillPodCidrs, needsPodCidr, POD_CIDRS, rangesOf } from "./pod-cidr.ts";

function list(...subnets: readonly string[]): string {
  const ipam = { type: "berth", ranges: subnets.map((subnet) => [{ subnet }]) };
  return JSON.stringify({ cniVersion: "1.0.0", name: "pods", plugins: [{ type: "bridge", ipam }] });
}

function subnetsIn(text: string): readonly string[] {
  return JSON.parse(text)
    .plugins[0].ipam.ranges.flat()
    .map(({ subnet }: { subnet: string }) => subnet);
}

describe("a list with places for the node's ranges", () => {
  it("gets those of the node, each family in its place", () => {
    const text = list("usePodCidr", "usePodCidrIPv6", "10.9.0.0/24");
    assert.ok(needsPodCidr(text));
    const filled = fillPodCidrs(text, "node-a", ["fd00:1::/64", "10.244.1.0/24"]);
    assert.deepEqual(subnetsIn(filled), ["10.244.1.0/24", "fd00:1::/64", "10.9.0.0/24"]);
    assert.ok(!needsPodCidr(filled));
  });

  it("gets all of a node that has several of a family, as one set that pods have one address of", () => {
    const cidrs = ["10.244.1.0/24", "fd00:1::/64", "10.250.7.0/26", "10.251.7.0/26"];
    const ipam = {
      type: "berth",
      ranges: [[{ subnet: "usePodCidr", gateway: "10.244.1.9" }], [{ subnet: "usePodCidrIPv6" }]],
    };
    const text = JSON.stringify({ cniVersion: "1.0.0", name: "pods", plugins: [{ type: "bridge", ipam }] });
    const { ranges } = JSON.parse(fillPodCidrs(text, "node-a", cidrs)).plugins[0].ipam;
    assert.deepEqual(ranges, [
      [
        { subnet: "10.244.1.0/24", gateway: "10.244.1.9" },
        { subnet: "10.250.7.0/26" },
        { subnet: "10.251.7.0/26" },
      ],
      [{ subnet: "fd00:1::/64" }],
    ]);
    const single = JSON.stringify({ ipam: { type: "berth", subnet: "usePodCidr" } });
    assert.equal(JSON.parse(fillPodCidrs(single, "node-a", cidrs)).ipam.subnet, "10.244.1.0/24");
  });

  it("knows what Kubernetes gave the node, and what its annotation adds", () => {
    const node = (text: string) => ({
      metadata: { name: "node-a", uid: "u", resourceVersion: "1", annotations: { [POD_CIDRS]: text } },
      spec: { podCIDRs: ["10.244.1.0/24", "fd00:1::/64"] },
    });
    const more = rangesOf(node(" 10.250.7.0/26,10.244.1.0/24, fd00:2::/64,"), "node-a");
    assert.deepEqual(more, ["10.244.1.0/24", "fd00:1::/64", "10.250.7.0/26", "fd00:2::/64"]);
    for (const wrong of ["10.250.7.1/26", "10.250.7.0", "everything"])
      assert.throws(() => rangesOf(node(`10.250.6.0/26,${wrong}`), "node-a"), {
        code: "NOT_READY",
        message: `${wrong} in the annotation berth.dev/pod-cidrs of node node-a is no range such as 10.244.7.0/24`,
      });
  });

  for (const [cidrs, has] of [
    [[], "no podCIDRs"],
    [["fd00:1::/64"], "the podCIDRs fd00:1::/64"],
  ] as const) {
    it(`waits for a node that has ${has}`, () => {
      assert.throws(() => fillPodCidrs(list("usePodCidr"), "node-a", cidrs), {
        code: "NOT_READY",
        message: new RegExp(`^the conflist says usePodCidr, and node node-a has ${has};`),
      });
    });
  }

  it("is told from one without", () => {
    assert.ok(!needsPodCidr(list("10.9.0.0/24")));
  });
});
