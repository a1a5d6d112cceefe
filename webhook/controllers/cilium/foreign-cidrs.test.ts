// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { parsePool } from "../../../allocator/pool/pool.ts";
import { readCiliumNode } from "./cilium-node.ts";
import { foreignWords } from "./foreign-cidrs.ts";

const POOL = parsePool({
  name: "a",
  spec: {
    ranges: [{ cidr: "10.10.0.0/24" }, { cidr: "fd00:10::/48" }],
    nodeCIDRs: { use: "Cilium", blockSize: { ipv4: 28, ipv6: 112 } },
  },
});

function words(mode: "cluster-pool" | "multi-pool", ipam: object): string | undefined {
  assert.ok(!isRefusal(POOL));
  const item = { metadata: { name: "n1", uid: "u", resourceVersion: "1" }, spec: { ipam } };
  return foreignWords(mode, [POOL], readCiliumNode(item as never));
}

describe("CIDRs of a CiliumNode that are of no pool", () => {
  it("are named, of both families", () => {
    const podCIDRs = ["10.10.0.16/28", "10.99.0.0/28", "fd00:99::/112"];
    assert.match(
      words("cluster-pool", { podCIDRs }) ?? "",
      /^10\.99\.0\.0\/28, fd00:99::\/112 in its CiliumNode is of no/,
    );
    assert.equal(words("cluster-pool", { podCIDRs: ["10.10.0.16/28", "fd00:10:0:1::/112"] }), undefined);
  });

  it("are nobody's matter in an entry of Cilium's that no pool of Berth's is called", () => {
    const allocated = (pool: string) => ({ pools: { allocated: [{ pool, cidrs: ["10.99.0.0/28"] }] } });
    assert.equal(words("multi-pool", allocated("mars")), undefined);
    assert.match(words("multi-pool", allocated("default")) ?? "", /^10\.99\.0\.0\/28 in its CiliumNode/);
  });
});
