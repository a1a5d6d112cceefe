// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { readCiliumNode } from "./cilium-node.ts";
import type { Offer, OwnBlock } from "./plan.ts";
import { planCrdNode } from "./plan-crd.ts";

const OFFER: Offer = {
  pool: "east",
  ciliumPool: "default",
  family: "IPv4",
  length: 30,
  marks: { growBelow: 3, shrinkAbove: 6 },
};

function block(text: string, over: Partial<OwnBlock> = {}): OwnBlock {
  const cidr = parseCidr(text);
  assert.ok(cidr);
  return { cidr, pool: "east", ciliumPool: "default", recalled: false, drains: false, ...over };
}

const [A, B, C] = ["10.0.0.0/30", "10.0.0.4/30", "10.0.0.8/30"];
const addresses = (from: number) => [0, 1, 2, 3].map((n) => `10.0.0.${from + n}`);
const each = <T>(names: readonly string[], value: T) =>
  Object.fromEntries(names.map((name) => [name, value]));

interface Scene {
  readonly pool?: readonly string[];
  readonly podCIDRs?: readonly string[];
  readonly used?: readonly string[];
  readonly releases?: Readonly<Record<string, string>>;
  readonly blocks?: readonly OwnBlock[];
  readonly quiet?: readonly string[];
  readonly offers?: readonly Offer[];
  /** Addresses that another CiliumNode has. */
  readonly others?: readonly string[];
}

function plan({ pool = [], podCIDRs = [], used = [], releases = {}, ...scene }: Scene) {
  const node = readCiliumNode({
    metadata: { name: "n1", uid: "u", resourceVersion: "1" },
    spec: { ipam: { pool: each(pool, {}), podCIDRs } },
    status: { ipam: { used: each(used, {}), "release-ips": releases } },
  } as never);
  const { blocks = [], quiet = [], offers = [OFFER], others = [] } = scene;
  const isOthers = (address: string) => others.includes(address);
  const planned = planCrdNode({ node, blocks, offers, quiet: new Set(quiet), isOthers });
  const { keep, recall, releases: asks, publishes, adds, withdraws, removes, grants } = planned;
  return {
    keep,
    recall,
    asks,
    publishes,
    adds,
    withdraws,
    removes,
    lacks: grants.map(({ addresses: n }) => n),
  };
}

describe("a node of Cilium's in mode crd", () => {
  it("gets nothing of its own block that another CiliumNode has, and more in place of it", () => {
    const [first = "", second = ""] = addresses(0);
    const scene = { blocks: [block(A)], others: addresses(0).slice(2) };
    const { adds, lacks } = plan(scene);
    assert.deepEqual((adds as { pool: object }).pool, { [first]: {}, [second]: {} });
    assert.deepEqual(lacks, [1]);
    const listed = plan({ ...scene, pool: addresses(0), used: addresses(0) });
    assert.deepEqual((listed.adds as { pool: object }).pool, {}, "what it has itself is as it was");
  });

  it("knows an address of IPv6 however it is written, and keeps what its agent was not asked for in its own words", () => {
    const six = block("fd00::/126");
    const pool = ["FD00::1", "fd00:0::2"];
    const { adds } = plan({ blocks: [six], pool });
    assert.deepEqual((adds as { pool: object }).pool, { "fd00::": {}, "fd00::3": {} });
    const offers: Offer[] = [{ ...OFFER, family: "IPv6", length: 126 }];
    const blocks = [block("fd00::4/126"), block("fd00::8/126"), six];
    const rest = [4, 5, 6, 7, 8, 9, "a", "b", 0, 3].map((n) => `fd00::${n === 0 ? "" : n}`);
    const scene = { blocks, offers, quiet: ["fd00::/126"] };
    assert.deepEqual(plan({ ...scene, pool: [...rest, ...pool] }).recall, []);
    assert.deepEqual(plan({ ...scene, pool: [...rest, "fd00::1", "fd00::2"] }).recall, ["fd00::/126"]);
    const recalled = { ...scene, blocks: [block("fd00::/126", { recalled: true })], offers: [] };
    const releases = each(["fd00::", "fd00::1", "fd00::2", "fd00::3"], "ready-for-release");
    assert.deepEqual(plan({ ...recalled, pool, releases }).withdraws, []);
    const podCIDRs = ["FD00::/126"];
    const gone = plan({ ...recalled, pool: ["fd00::1"], podCIDRs, releases });
    assert.deepEqual(
      [gone.withdraws, gone.removes],
      [["fd00::/126"], { pool: { "fd00::1": null }, podCIDRs: [] }],
    );
  });

  it("keeps a block that its object names as part of a larger CIDR: it would only come back", () => {
    const scene = { blocks: [block(A), block(B)], pool: [...addresses(0), ...addresses(4)], quiet: [A, B] };
    assert.deepEqual(plan({ ...scene, podCIDRs: [A, B], used: [] }).recall, []);
    const free = { ...scene, blocks: [block(A), block(B), block(C)], quiet: [A, B, C] };
    const pool = [...scene.pool, ...addresses(8)];
    assert.deepEqual(plan({ ...free, pool, podCIDRs: [A, B, C] }).recall, [C]);
    assert.deepEqual(plan({ ...free, pool, podCIDRs: ["10.0.0.0/29", "10.0.0.8/29"] }).recall, []);
  });

  it("gets as much as the mark says before anything is used", () => {
    const planned = plan({});
    assert.deepEqual(planned.lacks, [3]);
    assert.deepEqual(plan({ offers: [] }).lacks, []);
  });

  it("is told of its blocks, as addresses and as CIDRs, beside what others wrote", () => {
    const planned = plan({ blocks: [block(A)], pool: ["192.0.2.1"], podCIDRs: ["192.0.2.0/24"] });
    assert.deepEqual(planned.adds, { pool: each(addresses(0), {}), podCIDRs: ["192.0.2.0/24", A] });
    assert.deepEqual(planned.publishes, [A]);
    assert.deepEqual(plan({ blocks: [block(A)], pool: addresses(0), podCIDRs: [A] }).publishes, []);
  });

  it("gets more when fewer than the mark are left", () => {
    const full = { blocks: [block(A)], pool: addresses(0), podCIDRs: [A] };
    assert.deepEqual(plan({ ...full, used: ["10.0.0.0"] }).lacks, []);
    assert.deepEqual(plan({ ...full, used: ["10.0.0.0", "10.0.0.1"] }).lacks, [1]);
  });

  const THREE = {
    blocks: [block(A), block(B), block(C)],
    pool: [...addresses(0), ...addresses(4), ...addresses(8)],
    podCIDRs: [A, B, C],
  };
  it("is asked for a block that is quiet, the last first, if enough is left without it", () => {
    assert.deepEqual(plan(THREE).recall, [], "it was seen once");
    assert.deepEqual(plan({ ...THREE, quiet: [A, B, C] }).recall, [C]);
    assert.deepEqual(plan({ ...THREE, quiet: [A, B, C], used: ["10.0.0.9"] }).recall, [B]);
    assert.deepEqual(plan({ ...THREE, quiet: [A], used: ["10.0.0.5", "10.0.0.9", "10.0.0.8"] }).recall, []);
  });

  it("is asked sooner for those of a pool that is to be emptied, as long as the mark for more is not touched", () => {
    const blocks = [block(A, { drains: true }), block(B), block(C)];
    assert.deepEqual(plan({ ...THREE, blocks, quiet: [A, B, C] }).recall, [A]);
    const scene = { blocks: [block(A, { drains: true })], pool: addresses(0), podCIDRs: [A], quiet: [A] };
    assert.deepEqual(plan(scene).recall, []);
  });

  const LEAVING = { ...THREE, blocks: [block(A), block(B), block(C, { recalled: true })] };
  it("lets go by its agent's word alone, address by address", () => {
    assert.deepEqual(plan(LEAVING).asks, each(addresses(8), "marked-for-release"));
    const marked = { ...LEAVING, releases: each(addresses(8), "marked-for-release") };
    assert.deepEqual([plan(marked).asks, plan(marked).withdraws], [{}, []]);
    const some = { ...marked.releases, "10.0.0.8": "ready-for-release" };
    assert.deepEqual(plan({ ...LEAVING, releases: some }).withdraws, []);
    const let_go = plan({ ...LEAVING, releases: each(addresses(8), "ready-for-release") });
    assert.deepEqual(let_go.withdraws, [C]);
    assert.deepEqual(let_go.removes, { pool: each(addresses(8), null), podCIDRs: [A, B] });
  });

  it("keeps a block of which its agent uses something, and may give it again", () => {
    const refused = { ...each(addresses(8), "ready-for-release"), "10.0.0.9": "do-not-release" };
    assert.deepEqual(plan({ ...LEAVING, releases: refused }).keep, [C]);
    assert.deepEqual(plan({ ...LEAVING, used: ["10.0.0.8"] }).keep, [C]);
    assert.deepEqual(plan({ ...THREE, releases: refused }).asks, each(addresses(8), null));
  });

  it("asks for all of a block that is larger than what is listed of one, and keeps it for any of its addresses", () => {
    const first = Array.from({ length: 256 }, (_, n) => `10.0.0.${n}`);
    const large = {
      blocks: [block("10.0.0.0/20", { recalled: true })],
      podCIDRs: ["10.0.0.0/20"],
      offers: [],
    };
    const listed = { ...large, pool: [...first, "10.0.5.7"], releases: each(first, "ready-for-release") };
    assert.deepEqual(plan(listed).asks, { "10.0.5.7": "marked-for-release" });
    assert.deepEqual(plan(listed).withdraws, []);
    assert.deepEqual(plan({ ...listed, used: ["10.0.5.7"] }).keep, ["10.0.0.0/20"]);
    const all = { ...listed, releases: each([...first, "10.0.5.7"], "ready-for-release") };
    assert.deepEqual(plan(all).withdraws, ["10.0.0.0/20"]);
    assert.ok("10.0.5.7" in ((plan(all).removes as { pool: object }).pool ?? {}));
  });

  it("is told that an address is given back once it is not its own any more", () => {
    const rest = { blocks: [block(A), block(B)], pool: [...addresses(0), ...addresses(4)], podCIDRs: [A, B] };
    const releases = {
      "10.0.0.8": "ready-for-release",
      "10.0.0.9": "do-not-release",
      "10.0.0.10": "released",
    };
    assert.deepEqual(plan({ ...rest, releases }).asks, { "10.0.0.8": "released", "10.0.0.9": null });
  });

  it("keeps what is recalled when its object was made again, for nobody has asked its agent there", () => {
    const again = { blocks: [block(C, { recalled: true })] };
    assert.deepEqual([plan(again).keep, plan(again).withdraws], [[C], []]);
    const crashed = { ...again, pool: addresses(0), releases: each(addresses(8), "ready-for-release") };
    const other = plan({ ...crashed, blocks: [block(A), ...again.blocks], podCIDRs: [A] });
    assert.deepEqual(
      [other.keep, other.withdraws],
      [[], [C]],
      "it had come out of the object, and no further",
    );
  });
});
