// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isRefusal } from "../base/errors.ts";
import { type Cidr, parseAddress, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { fullInterval } from "../ip/ip-range.ts";
import { blockAround, blockLength, cutSpace } from "./blocks.ts";
import { bySpecificity } from "./node-cidrs.ts";
import { type Pool, parsePool } from "./pool.ts";
import { choosePools } from "./pool-choice.ts";
import { settledSize } from "./settled-size.ts";

const SIZE = { use: "PodCIDR", blockSize: { ipv4: 24 } };

function read(spec: object, name = "nodes"): Pool {
  const pool = parsePool({ name, spec });
  assert.ok(!isRefusal(pool), isRefusal(pool) ? pool.message : "");
  return pool;
}

function refusal(spec: object): string {
  const pool = parsePool({ name: "nodes", spec });
  return isRefusal(pool) ? pool.message : "was accepted";
}

function cidr(text: string): Cidr {
  const found = parseCidr(text);
  assert.ok(found);
  return found;
}

const all = (pool: Pool, family: "IPv4" | "IPv6" = "IPv4") =>
  [...(cutSpace(pool, family)?.free(new IntervalSet(), "") ?? [])].map(({ text }) => text);

describe("a pool for CIDRs of nodes", () => {
  it("is cut into whole CIDRs, from the first address of a range to its last", () => {
    const pool = read({ ranges: [{ cidr: "10.244.0.0/22" }], nodeCIDRs: SIZE });
    assert.deepEqual(all(pool).toSorted(), [
      "10.244.0.0/24",
      "10.244.1.0/24",
      "10.244.2.0/24",
      "10.244.3.0/24",
    ]);
  });

  it("leaves out every CIDR of which something is kept back", () => {
    const pool = read({
      ranges: [{ cidr: "10.244.0.0/21", to: "10.244.6.254", exclude: ["10.244.1.7"], gateway: "10.244.2.1" }],
      reserved: ["10.244.3.0/25"],
      nodeCIDRs: SIZE,
    });
    assert.deepEqual(all(pool).toSorted(), ["10.244.0.0/24", "10.244.4.0/24", "10.244.5.0/24"]);
  });

  it("may have CIDRs larger than blocks of pods are, of both families and of several ranges", () => {
    const nodeCIDRs = { use: "PodCIDR", blockSize: { ipv4: 16, ipv6: 64 } };
    const pool = read({
      ranges: [{ cidr: "10.0.0.0/15" }, { cidr: "172.16.0.0/16" }, { cidr: "fd00:10::/48" }],
      nodeCIDRs,
    });
    assert.deepEqual(all(pool).toSorted(), ["10.0.0.0/16", "10.1.0.0/16", "172.16.0.0/16"]);
    const space = cutSpace(pool, "IPv6");
    assert.equal(space?.count, 65_536n);
    assert.equal(space.free(new IntervalSet(), "node-a").next().value?.prefixLength, 64);
    assert.equal(
      blockAround(pool, parseAddress("fd00:10:0:7::1") ?? assert.fail())?.text,
      "fd00:10:0:7::/64",
    );
  });

  it("has no blocks for pods, and no pod is served from it whoever names it", () => {
    const pool = read({ ranges: [{ cidr: "10.244.0.0/16" }], nodeSelector: {}, nodeCIDRs: SIZE });
    assert.equal(blockLength(pool, "IPv4"), undefined);
    const pod = { namespace: "shop", namespaceLabels: {}, podLabels: {}, nodeLabels: {} };
    assert.equal(choosePools([pool], pod), undefined);
    for (const named of [{ network: ["nodes"] }, { annotation: ["nodes"] }]) {
      const choice = choosePools([pool], { ...pod, ...named });
      assert.ok(choice !== undefined && isRefusal(choice));
      assert.match(
        choice.message,
        /pool "nodes" is for CIDRs of nodes .* gives pods no address; name another pool/,
      );
    }
    assert.equal(settledSize({ ...pool.spec, default: true }), undefined);
  });

  it("is refused with what is for pods, without a size, or with one that does not fit", () => {
    const ranges = [{ cidr: "10.244.0.0/16" }];
    const with6 = [...ranges, { cidr: "fd00::/64" }];
    const said = [
      refusal({ ranges, nodeCIDRs: SIZE, blockSize: { ipv4: 26 } }),
      refusal({ ranges, nodeCIDRs: SIZE, default: true }),
      refusal({ ranges, nodeCIDRs: { use: "PodCIDR", blockSize: {} } }),
      refusal({ ranges, nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 15 } } }),
      refusal({ ranges, nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24, ipv6: 64 } } }),
      refusal({ ranges: with6, nodeCIDRs: SIZE }),
      refusal({ ranges, nodeCIDRs: { use: "Flannel", blockSize: { ipv4: 24 } } }),
    ];
    assert.deepEqual(
      said.map((words) => words.split(" ").slice(0, 3).join(" ")),
      [
        "spec.blockSize is for",
        "spec.default is for",
        "spec.nodeCIDRs.blockSize is empty;",
        "spec.nodeCIDRs.blockSize.ipv4 15 makes",
        "spec.nodeCIDRs.blockSize.ipv6 is given",
        "spec.nodeCIDRs.blockSize.ipv6 is not",
        "spec.nodeCIDRs.use must be",
      ],
    );
    assert.match(said[5] ?? "", /the pool has fd00::\/64; give it, or drop that range/);
  });

  it("comes before others if it asks for more labels, then by priority, then by name", () => {
    const pool = (name: string, more: object = {}) =>
      read({ ranges: [{ cidr: "10.244.0.0/16" }], nodeCIDRs: SIZE, ...more }, name);
    const zone = { matchLabels: { zone: "a" } };
    const both = { ...zone, matchExpressions: [{ key: "gpu", operator: "Exists" }] };
    const pools = [
      pool("a", { priority: 9 }),
      pool("c", { nodeSelector: zone }),
      pool("b", { nodeSelector: zone }),
      pool("d", { nodeSelector: zone, priority: 1 }),
      pool("z", { nodeSelector: both }),
      pool("other", { nodeCIDRs: { ...SIZE, use: "Cilium" } }),
    ];
    assert.deepEqual(
      bySpecificity(pools, "PodCIDR").map(({ name }) => name),
      ["z", "d", "b", "c", "a"],
    );
  });

  it("is cut into CIDRs that are disjoint, and lie in it with all their addresses", () => {
    const drawn = fc.record({
      from: fc.integer({ min: 1, max: 900 }),
      size: fc.integer({ min: 0, max: 120 }),
      length: fc.integer({ min: 23, max: 32 }),
      excluded: fc.integer({ min: 0, max: 1023 }),
    });
    const at = (n: number) => `10.0.${n >> 8}.${n & 255}`;
    const property = fc.property(drawn, ({ from, size, length, excluded }) => {
      const range = { cidr: "10.0.0.0/22", from: at(from), to: at(from + size), exclude: [at(excluded)] };
      const pool = read({ ranges: [range], nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: length } } });
      const base = 0x0a00_0000;
      const step = 2 ** (32 - length);
      const expected: string[] = [];
      for (let n = 0; n < 1024; n += step) {
        const isIn = n >= from && n + step - 1 <= from + size;
        if (isIn && !(excluded >= n && excluded < n + step)) expected.push(`${at(n)}/${length}`);
      }
      const found = all(pool);
      assert.deepEqual(found.toSorted(), expected.toSorted());
      for (const text of found) {
        const { first } = fullInterval(cidr(text));
        assert.equal(Number(first - BigInt(base)) % step, 0);
        assert.ok(cutSpace(pool, "IPv4")?.has(cidr(text)));
      }
    });
    fc.assert(property);
  });
});
