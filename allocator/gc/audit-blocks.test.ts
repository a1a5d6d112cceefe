// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  addrs,
  bindingTo,
  claimRecord,
  parsed,
  poolRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import type { Block } from "../model/block.ts";
import type { Claim } from "../model/claim.ts";
import { audit } from "./audit.ts";

const DB = parsed(poolRecord("db", "10.20.0.0/24", { blockSize: { ipv4: 28 } }));

function block(cidr: string, over: Partial<Block> = {}): Block {
  return { cidr, pool: "db", node: "node-a", nodeUID: "u", holes: [], granted: true, ...over };
}

/** Findings as "severity kind: message". */
function found(blocks: readonly Block[], claims: readonly Claim[] = []): string[] {
  const reservations = claims.flatMap((claim) => reservationsOf(claim));
  const findings = audit({ pools: [DB], claims, reservations, attachments: [], blocks });
  return findings.map(({ severity, kind, message }) => `${severity} ${kind}: ${message}`);
}

describe("the audit of blocks", () => {
  it("finds nothing wrong with blocks beside each other, and fixed addresses in their holes", () => {
    const claim = claimRecord({ addresses: addrs("10.20.0.70"), binding: bindingTo("mysql-0", "node-b") });
    const blocks = [
      block("10.20.0.64/28", { holes: ["10.20.0.70/32"] }),
      block("10.20.0.80/28"),
      block("10.20.0.48/28"),
    ];
    assert.deepEqual(found(blocks, [claim]), []);
  });

  it("finds two that share addresses, also behind one that reaches further", () => {
    const blocks = [
      block("10.20.0.64/27"),
      block("10.20.0.64/28"),
      block("10.20.0.80/28"),
      block("10.20.0.96/28"),
    ];
    const overlaps = found(blocks).filter((words) => words.includes("block-overlap"));
    assert.deepEqual(overlaps.toSorted(), [
      "defect block-overlap: blocks 10.20.0.64/27 and 10.20.0.64/28 share addresses",
      "defect block-overlap: blocks 10.20.0.64/27 and 10.20.0.80/28 share addresses",
    ]);
  });

  it("finds one of no pool, or of another size than its pool's", () => {
    assert.deepEqual(found([block("10.20.0.64/29"), block("10.30.0.0/28", { pool: "gone" })]), [
      "defect stray-block: block 10.20.0.64/29 of node node-a is of pool db, whose blocks have another size",
      "defect stray-block: block 10.30.0.0/28 of node node-a is of pool gone, which is not there",
    ]);
  });

  it("finds an address that is a block, which the block around it did not allow", () => {
    const whole = {
      division: "returned",
      status: { node: "node-a", used: 0, returnedAddresses: [addr("10.20.0.65")] },
    } as const;
    const single = (cidr: string) => block(cidr, { node: "node-b", within: "10.20.0.64/28" });
    assert.deepEqual(found([block("10.20.0.64/28", whole), single("10.20.0.65/32")]), []);
    const words = (cidr: string, why: string) =>
      `defect stray-block: block ${cidr} of node node-b is of block 10.20.0.64/28, which ${why}`;
    assert.deepEqual(found([block("10.20.0.64/28", whole), single("10.20.0.66/32")]), [
      words("10.20.0.66/32", "has not given it back"),
    ]);
    assert.deepEqual(found([single("10.20.0.65/32")]), [words("10.20.0.65/32", "is not there")]);
  });

  it("finds a fixed address that a node may give, and what a crash left of one", () => {
    const bound = claimRecord({ binding: bindingTo("mysql-0", "node-b") });
    const words =
      "claim shop/mysql-0 lists 10.20.0.70, which node node-a may give to others from its block 10.20.0.64/28";
    assert.deepEqual(found([block("10.20.0.64/28")], [bound]), [`defect in-block: ${words}`]);
    assert.deepEqual(found([block("10.20.0.64/28")], [claimRecord()]), [`pending in-block: ${words}`]);
    assert.deepEqual(found([block("10.20.0.64/28", { granted: false })], [bound]), [
      "pending ungranted-block: block 10.20.0.64/28 is being granted to node node-a",
    ]);
  });
});
