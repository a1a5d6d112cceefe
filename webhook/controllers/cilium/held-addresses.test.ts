// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { readCiliumNode } from "./cilium-node.ts";
import { HeldAddresses } from "./held-addresses.ts";

function nodeOf(name: string, pool: object, used: object = {}) {
  const metadata = { name, uid: "u", resourceVersion: "1" };
  return [
    name,
    readCiliumNode({ metadata, spec: { ipam: { pool } }, status: { ipam: { used } } } as never),
  ] as const;
}

it("an address is another node's however that one's object writes it", () => {
  const held = new HeldAddresses(() => [
    nodeOf("n1", { "FD00:1::5": {} }, { "fd00:1:0::6": {} }),
    nodeOf("n2", { "fd00:1::7": {} }),
  ]);
  const others = (node: string) => [5, 6, 7].filter((n) => held.isOthers(`fd00:1::${n}`, node));
  assert.deepEqual([others("n1"), others("n2"), others("n3")], [[7], [5, 6], [5, 6, 7]]);
});
