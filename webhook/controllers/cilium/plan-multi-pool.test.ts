// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { readCiliumNode } from "./cilium-node.ts";
import type { Offer, OwnBlock } from "./plan.ts";
import { planMultiPoolNode } from "./plan-multi-pool.ts";

const OFFER: Offer = {
  pool: "east",
  ciliumPool: "green",
  family: "IPv4",
  length: 28,
  marks: { growBelow: 8, shrinkAbove: 16 },
};
const [A, B] = ["10.0.0.0/28", "10.0.0.16/28"];

function block(text: string, over: Partial<OwnBlock> = {}): OwnBlock {
  const cidr = parseCidr(text);
  assert.ok(cidr);
  return { cidr, pool: "east", ciliumPool: "green", recalled: false, drains: false, ...over };
}

const nodeOf = (ipam: object) =>
  readCiliumNode({ metadata: { name: "n1", uid: "u", resourceVersion: "1" }, spec: { ipam } } as never);

interface Scene {
  readonly needs?: number;
  readonly allocated?: readonly object[];
  readonly blocks?: readonly OwnBlock[];
  readonly quiet?: readonly string[];
  readonly offers?: readonly Offer[];
}

function plan({ needs, allocated = [], blocks = [], quiet = [], offers = [OFFER] }: Scene) {
  const requested = needs === undefined ? [] : [{ pool: "green", needed: { "ipv4-addrs": needs } }];
  const node = nodeOf({ pools: { requested, allocated } });
  const { grants, ...planned } = planMultiPoolNode({ node, blocks, offers, quiet: new Set(quiet) });
  return { ...planned, lacks: grants.map(({ addresses, blockSize }) => [addresses, blockSize]) };
}

describe("a node of Cilium's in mode multi-pool", () => {
  it("gets what its agent requests, counted as the agent counts: without the first and the last of a CIDR", () => {
    assert.deepEqual(plan({}).lacks, []);
    assert.deepEqual(plan({ needs: 16 }).lacks, [[16, 14]]);
    const allocated = [{ pool: "green", cidrs: [A] }];
    assert.deepEqual(plan({ needs: 16, allocated, blocks: [block(A)] }).lacks, [[2, 14]]);
    assert.deepEqual(plan({ needs: 14, allocated, blocks: [block(A)] }).lacks, []);
    const whole = [{ pool: "green", cidrs: [A], allowFirstIP: true, allowLastIP: true }];
    assert.deepEqual(plan({ needs: 16, allocated: whole, blocks: [block(A)] }).lacks, []);
  });

  it("has its CIDRs in the entry of their pool, and the entries of others as they are", () => {
    const other = { pool: "red", cidrs: ["192.0.2.0/28"], allowFirstIP: true };
    const added = plan({
      needs: 20,
      allocated: [other, { pool: "green", cidrs: [A] }],
      blocks: [block(A), block(B)],
    });
    assert.deepEqual(added.adds, { pools: { allocated: [other, { pool: "green", cidrs: [A, B] }] } });
    assert.deepEqual(added.publishes, [B]);
    const first = plan({ needs: 8, allocated: [other], blocks: [block(A)] });
    assert.deepEqual(first.adds, { pools: { allocated: [other, { pool: "green", cidrs: [A] }] } });
  });

  it("gives back what its agent has taken out, once that was seen twice", () => {
    const one = { needs: 8, allocated: [{ pool: "green", cidrs: [A] }], blocks: [block(A), block(B)] };
    assert.deepEqual(plan(one).recall, []);
    assert.deepEqual(plan({ ...one, quiet: [B] }).recall, [B]);
    const recalled = { ...one, blocks: [block(A), block(B, { recalled: true })] };
    assert.deepEqual(plan(recalled).withdraws, [B]);
    const listed = [{ pool: "green", cidrs: [A, B] }];
    assert.deepEqual(plan({ ...recalled, allocated: listed }).keep, [B], "its agent has put it in again");
    assert.deepEqual(plan({ ...recalled, needs: 20 }).keep, [B], "it is needed again");
  });

  it("is told of all that it has when its object was made again", () => {
    const again = plan({ blocks: [block(A), block(B, { recalled: true })], quiet: [A, B] });
    assert.deepEqual([again.publishes, again.keep, again.withdraws, again.recall], [[A], [B], [], []]);
  });

  it("is told then of what it has of a pool that is not for it any more, which goes once its agent takes it out", () => {
    const [left, gone] = [
      { pool: "west", ciliumPool: "red" },
      { pool: "west", ciliumPool: undefined },
    ];
    const blocks = [block(A, left), block(B, { ...left, recalled: true }), block("10.0.0.32/28", gone)];
    const again = plan({ blocks, quiet: [A, B, "10.0.0.32/28"] });
    assert.deepEqual([again.publishes, again.keep, again.withdraws, again.recall], [[A], [B], [], []]);
    assert.deepEqual(again.adds, { pools: { allocated: [{ pool: "red", cidrs: [A] }] } });
    const listed = [{ pool: "red", cidrs: [A, B] }];
    const kept = plan({ needs: 0, allocated: listed, blocks: [block(A, left)], quiet: [A] });
    assert.deepEqual([kept.publishes, kept.recall], [[], []]);
    assert.deepEqual(plan({ needs: 0, blocks: [block(A, left)], quiet: [A] }).recall, [A]);
  });

  it("is told of a pool that nobody has", () => {
    const { wrong, lacks } = plan({ needs: 8, offers: [] });
    assert.deepEqual(lacks, []);
    assert.match(wrong.join(), /8 IPv4 addresses of pool "green" are requested/);
    assert.match(plan({ needs: 8, offers: [{ ...OFFER, length: 31 }] }).wrong.join(), /green/);
  });
});
