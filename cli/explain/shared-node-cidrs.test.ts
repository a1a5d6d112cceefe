// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Block } from "../../allocator/model/block.ts";
import { sharedNodeCidrs } from "./shared-node-cidrs.ts";

function block(cidr: string, node: string, over: Partial<Block> = {}): Block {
  const record = { cidr, pool: "all", node, nodeUID: "u", use: "PodCIDR", holes: [], granted: true } as const;
  return { ...record, ...over };
}

function worldOf(nodes: Readonly<Record<string, readonly string[]>>) {
  return {
    async *each() {
      for (const [name, podCIDRs] of Object.entries(nodes)) {
        const object = readObject({ apiVersion: "v1", kind: "Node", metadata: { name }, spec: { podCIDRs } });
        if (!isRefusal(object)) yield object;
      }
    },
  };
}

async function pairs(blocks: readonly Block[], nodes: Readonly<Record<string, readonly string[]>>) {
  const found = await sharedNodeCidrs(blocks, worldOf(nodes));
  return found?.map(({ message }) => message.split(":")[0]);
}

describe("CIDRs that two nodes have", () => {
  const [A, B] = ["10.244.0.0/24", "10.244.1.0/24"];

  it("are none where each node says what its record says", async () => {
    assert.deepEqual(await pairs([block(A, "a"), block(B, "b")], { a: [A], b: [B] }), []);
    assert.deepEqual(await pairs([], { a: [A], b: [A] }), [], "Berth gives none");
    const cooling = block(A, "gone", { releasedAt: 5 });
    assert.deepEqual(await pairs([cooling, block(B, "b")], { a: [A], b: [B] }), []);
  });

  it("are told of once for each pair, by whose word they have them", async () => {
    const blocks = [block(A, "a"), block(B, "b")];
    assert.deepEqual(await pairs(blocks, { a: [A], dup: [A], b: [B], far: ["10.9.0.0/24"] }), [
      "node a has 10.244.0.0/24 by Berth's record, and node dup has 10.244.0.0/24 by its spec",
    ]);
    assert.deepEqual(await pairs(blocks, { wide: ["10.244.0.0/23"] }), [
      "node a has 10.244.0.0/24 by Berth's record, and node wide has 10.244.0.0/23 by its spec",
      "node wide has 10.244.0.0/23 by its spec, and node b has 10.244.1.0/24 by Berth's record",
    ]);
  });

  it("are not known to who may not list nodes", async () => {
    const world = {
      async *each() {
        yield await Promise.reject(new BerthError("STORE_READ_ONLY", "forbidden"));
      },
    };
    assert.equal(await sharedNodeCidrs([block(A, "a")], world), undefined);
  });
});
