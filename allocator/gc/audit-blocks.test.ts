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

  it("takes blocks of pools with different sizes for what their owners have, not for their CIDRs", () => {
    const pool = (name: string, from: string, to: string, ipv4: number) => {
      const ranges = [{ cidr: "10.61.0.0/24", from: `10.61.0.${from}`, to: `10.61.0.${to}` }];
      return parsed({ name, spec: { ranges, blockSize: { ipv4 } } });
    };
    const pools = [pool("pc", "16", "31", 26), pool("pd", "40", "63", 30)];
    const holes = ["10.61.0.0/28", "10.61.0.32/27"];
    const large = block("10.61.0.0/26", { pool: "pc", holes });
    const small = ["40", "44", "60"].map((last) => block(`10.61.0.${last}/30`, { pool: "pd" }));
    const reported = (blocks: readonly Block[]) =>
      audit({ pools, claims: [], reservations: [], attachments: [], blocks }).map(
        ({ severity, kind, message }) => `${severity} ${kind}: ${message}`,
      );
    assert.deepEqual(reported([large, ...small]), []);
    assert.deepEqual(
      reported([{ ...large, holes: ["10.61.0.0/28", "10.61.0.32/29", "10.61.0.48/28"] }, ...small]),
      [
        "defect stray-block: block 10.61.0.0/26 of node node-a has 10.61.0.40, which pool pc does not give",
        "defect block-overlap: blocks 10.61.0.0/26 and 10.61.0.40/30 share addresses",
        "defect block-overlap: blocks 10.61.0.0/26 and 10.61.0.44/30 share addresses",
      ],
    );
  });

  it("finds one outside of its pool's ranges, which its node is asked for, or has given back", () => {
    const outside = "10.20.1.16/28";
    const words = `stray-block: block ${outside} of node node-a has 10.20.1.16, which pool db does not give`;
    assert.deepEqual(found([block(outside)]), [`defect ${words}`]);
    assert.deepEqual(found([block(outside, { recalledAt: 5 })]), [
      `pending ${words}; the node is asked to give it back once nobody uses it`,
    ]);
    assert.deepEqual(found([block(outside, { recalledAt: 5, releasedAt: 9 })]), []);
    assert.deepEqual(found([block("10.20.0.240/28")]), [
      "defect stray-block: block 10.20.0.240/28 of node node-a has 10.20.0.255, which pool db does not give",
    ]);
    assert.deepEqual(found([block("10.20.0.240/28", { holes: ["10.20.0.255/32"] })]), []);
  });

  it("finds a sandbox with an address that no node has in a block any more", () => {
    const use = {
      ...{ node: "node-a", network: "net", containerID: "c", interface: "eth0" },
      addresses: addrs("10.20.0.66"),
    };
    const reported = (over: object, blocks?: readonly Block[]) =>
      audit({
        ...{ pools: [DB], claims: [], reservations: [], attachments: [{ ...use, ...over }] },
        ...(blocks && { blocks }),
      }).map(({ severity, kind, subject, message }) => `${severity} ${kind} ${subject}: ${message}`);
    const words =
      "defect outside-block 10.20.0.66: address 10.20.0.66 is used by c eth0 on node-a, which has it of pool db, and no node has a block with it";
    const ofBlocksOf = "db";
    assert.deepEqual(reported({ ofBlocksOf }, [block("10.20.0.64/28")]), []);
    assert.deepEqual(reported({ ofBlocksOf }, [block("10.20.0.64/28", { releasedAt: 5 })]), [words]);
    assert.deepEqual(reported({ ofBlocksOf }, [block("10.20.0.64/28", { holes: ["10.20.0.66/32"] })]), [
      words,
    ]);
    assert.deepEqual(reported({ ofBlocksOf }, []), [words]);
    assert.deepEqual(reported({ ofBlocksOf }), [], "nobody looked at blocks");
    assert.deepEqual(reported({}, []), []);
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
