// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { observedNode } from "../../cluster-state/projections.ts";
import { clusterNode } from "./node-client.ts";

it("a Node says its CIDRs in its spec, or else in annotations, which are known as such", () => {
  const annotations = { "network.cilium.io/ipv4-pod-cidr": "10.244.1.0/24" };
  const nodeOf = (spec: object) => {
    const metadata = { name: "a", uid: "u", resourceVersion: "1", annotations };
    const { podCIDRs, isAnnotated } = clusterNode(observedNode({ metadata, spec } as never));
    return [podCIDRs, isAnnotated];
  };
  assert.deepEqual(nodeOf({}), [["10.244.1.0/24"], true]);
  assert.deepEqual(nodeOf({ podCIDRs: ["10.244.2.0/24"] }), [["10.244.2.0/24"], undefined]);
});
