// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { readCiliumNode } from "./cilium-node.ts";
import type { Offer, OwnBlock } from "./plan.ts";
import { planClusterPoolNode } from "./plan-cluster-pool.ts";

const OFFER: Offer = {
  pool: "east",
  ciliumPool: "default",
  family: "IPv4",
  length: 28,
  marks: { growBelow: 8, shrinkAbove: 16 },
};
const [A, B] = ["10.0.0.0/28", "10.0.0.16/28"];

function block(text: string, over: Partial<OwnBlock> = {}): OwnBlock {
  const cidr = parseCidr(text);
  assert.ok(cidr);
  return { cidr, pool: "east", ciliumPool: "default", recalled: false, drains: false, ...over };
}

interface Scene {
  readonly podCIDRs?: readonly string[];
  readonly blocks?: readonly OwnBlock[];
  readonly quiet?: readonly string[];
  /** What its agent says, if it says anything. */
  readonly states?: Readonly<Record<string, string>>;
  readonly marks?: readonly [number, number];
}

function plan({ podCIDRs = [], blocks = [], quiet = [], states = {}, marks }: Scene) {
  const [growBelow, shrinkAbove] = marks ?? [];
  const thresholds = {
    "pod-cidr-allocation-threshold": growBelow,
    "pod-cidr-release-threshold": shrinkAbove,
  };
  const said = Object.fromEntries(Object.entries(states).map(([cidr, status]) => [cidr, { status }]));
  const item = {
    metadata: { name: "n1", uid: "u", resourceVersion: "1" },
    spec: { ipam: { podCIDRs, ...thresholds } },
    status: { ipam: { "pod-cidrs": said } },
  };
  const node = readCiliumNode(item as never);
  const { grants, ...planned } = planClusterPoolNode({
    node,
    blocks,
    offers: [OFFER],
    quiet: new Set(quiet),
  });
  return { ...planned, grants: grants.map(({ family }) => family) };
}

describe("a node of Cilium's in mode cluster-pool", () => {
  it("gets one CIDR of a family, and keeps all that it has", () => {
    assert.deepEqual(plan({}).grants, ["IPv4"]);
    assert.deepEqual(plan({ podCIDRs: ["192.0.2.0/24"] }).grants, []);
    const planned = plan({ podCIDRs: ["fd00::/64"], blocks: [block(A)] });
    const podCIDRs = ["fd00::/64", A];
    const marks = { "pod-cidr-allocation-threshold": 8, "pod-cidr-release-threshold": 16 };
    assert.deepEqual([planned.grants, planned.adds], [[], { podCIDRs, ...marks }]);
    assert.deepEqual(plan({ podCIDRs: ["10.0.0.0/24"], blocks: [block(A)] }).publishes, [], "a part of one");
    assert.deepEqual(plan({ blocks: [block(A, { recalled: true })] }).keep, [A]);
  });

  it("gets another when its agent says that all are used up, and not before it has read the last", () => {
    const one = { podCIDRs: [A], blocks: [block(A)] };
    assert.deepEqual(plan({ ...one, states: { [A]: "in-use" } }).grants, []);
    assert.deepEqual(plan({ ...one, states: { [A]: "depleted" } }).grants, ["IPv4"]);
    assert.deepEqual(plan({ ...one, blocks: [block(A), block(B)], states: { [A]: "depleted" } }).grants, []);
    const two = { podCIDRs: [A, B], blocks: [block(A), block(B)] };
    assert.deepEqual(plan({ ...two, states: { [A]: "depleted" } }).grants, []);
    assert.deepEqual(plan({ ...two, states: { [A]: "depleted", [B]: "released" } }).grants, ["IPv4"]);
  });

  it("gives one back once its agent, after it has read a list without it, says nothing of it any more", () => {
    const states = { [A]: "in-use", [B]: "released" };
    const two = { podCIDRs: [A, B], blocks: [block(A), block(B)], states };
    assert.deepEqual(plan(two).recall, [], "said once");
    assert.deepEqual(plan({ ...two, quiet: [B] }).recall, [B]);
    const recalled = { ...two, blocks: [block(A), block(B, { recalled: true })] };
    const listed = plan(recalled);
    assert.deepEqual([listed.edits, listed.withdraws, listed.keep], [{ podCIDRs: [A] }, [], []]);
    const struck = { ...recalled, podCIDRs: [A] };
    const waits = plan(struck);
    assert.deepEqual([waits.edits, waits.withdraws, waits.keep], [{}, [], []]);
    assert.deepEqual(plan({ ...struck, states: { [A]: "in-use" } }).withdraws, [B]);
    const used = plan({ ...struck, states: { [A]: "depleted", [B]: "in-use" } });
    assert.deepEqual([used.withdraws, used.keep], [[], [B]], "a pod got an address of it after all");
    const anew = plan({ ...recalled, states: { [A]: "in-use", [B]: "in-use" } });
    assert.deepEqual([anew.edits, anew.keep], [{}, [B]], "its agent has started anew");
    assert.deepEqual(plan({ ...struck, states: {} }).keep, [B], "its object was made again");
  });

  it("is told of changed marks where Cilium's definition has them", () => {
    const one = { podCIDRs: [A], blocks: [block(A)] };
    assert.deepEqual(plan({ ...one, marks: [8, 16] }).edits, {});
    const marks = { "pod-cidr-allocation-threshold": 8, "pod-cidr-release-threshold": 16 };
    assert.deepEqual(plan({ ...one, marks: [3, 16] }).edits, marks);
    assert.deepEqual(plan(one).edits, {});
  });
});
