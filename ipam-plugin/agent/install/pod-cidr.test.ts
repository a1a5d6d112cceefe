// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillPodCidrs, needsPodCidr } from "./pod-cidr.ts";

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
