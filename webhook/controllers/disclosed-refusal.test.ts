// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keptForOtherNodes } from "../../allocator/planning/node-fit.ts";
import { addr, parsed, poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { disclosedRefusal } from "./disclosed-refusal.ts";

describe("what events tell of a pod on a node that its pool is not for", () => {
  const record = poolRecord("db", "10.0.0.0/29", { nodeSelector: { matchLabels: { zone: "a" } } });
  const refusal = keptForOtherNodes(parsed(record), addr("10.0.0.2"), { namespace: "shop", node: "node-b" });
  const context = { view: viewOf({ pools: [record] }) };

  it("is the node, and neither the pool nor whose nodes it is for", () => {
    const { message } = disclosedRefusal({ context, refusalsNameAll: false }, refusal, "shop");
    assert.equal(
      message,
      "what is kept for this pod is for other nodes than node-b, where it is; delete the pod so that it is created again, or ask whoever runs the network",
    );
  });

  it("is everything where refusals name all", () => {
    const { message } = disclosedRefusal({ context, refusalsNameAll: true }, refusal, "shop");
    assert.match(
      message,
      /^address 10\.0\.0\.2, .* pool "db", for nodes with zone=a, and the pod is on node node-b/,
    );
  });
});
