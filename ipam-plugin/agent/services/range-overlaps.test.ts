// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type LogFields, noopLogger } from "../../../allocator/base/ports.ts";
import type { RangeSpec } from "../../../allocator/ip/ip-range.ts";
import { type Pool, parsePool } from "../../../allocator/pool/pool.ts";
import { exposed } from "../../../test/support/exposed.ts";
import { isCniError } from "../../cni/errors.ts";
import { Fields } from "../../cni/json-fields.ts";
import { type RangeSet, readRangeSets } from "../../cni/range-set.ts";
import { measureNode } from "../metrics.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { RangeOverlaps } from "./range-overlaps.ts";

function poolOf(name: string, ...ranges: readonly RangeSpec[]): Pool {
  const pool = parsePool({ name, spec: { ranges } });
  return isRefusal(pool) ? assert.fail(pool.message) : pool;
}

function setsOf(...ranges: readonly object[]): readonly RangeSet[] {
  const read = readRangeSets(ranges.map((range) => [new Fields(range)]));
  return isCniError(read) ? assert.fail(read.msg) : read;
}

const DB = poolOf("db", { cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.99" });

/** `pool: addresses`, of all that lie in a pool. */
function found(sets: readonly RangeSet[], ...pools: readonly Pool[]): readonly string[] {
  const overlaps = new RangeOverlaps(noopLogger);
  overlaps.look("net", sets, pools);
  return overlaps.all().map(({ pool, addresses }) => `${pool}: ${addresses}`);
}

describe("ranges of a network that lie in a pool", () => {
  it("are those that both give", () => {
    const wide = setsOf({ subnet: "10.20.0.0/24" });
    assert.deepEqual(found(wide, DB), ["db: 10.20.0.50-10.20.0.99"]);
    const [beside, edge] = [
      { subnet: "10.20.0.0/24", rangeEnd: "10.20.0.49" },
      { subnet: "10.20.0.0/24", rangeStart: "10.20.0.99", rangeEnd: "10.20.0.120" },
    ];
    assert.deepEqual(found(setsOf(beside), DB), []);
    assert.deepEqual(found(setsOf(edge), DB), ["db: 10.20.0.99"]);
    const six = poolOf("six", { cidr: "fd00:20::/64" });
    assert.deepEqual(found(setsOf({ subnet: "fd00:20::/112" }), DB, six), ["six: fd00:20::1-fd00:20::ffff"]);
  });

  it("are none of a pool whose CIDRs are for the nodes' own networks, but of Cilium's", () => {
    const wide = setsOf({ subnet: "10.20.0.0/25" });
    for (const [use, count] of [
      ["PodCIDR", 0],
      ["Cilium", 1],
    ] as const) {
      const nodeCIDRs = { use, blockSize: { ipv4: 25 } };
      const pool = parsePool({ name: "nodes", spec: { ranges: [{ cidr: "10.20.0.0/24" }], nodeCIDRs } });
      assert.ok(!isRefusal(pool));
      const all = new RangeOverlaps(noopLogger);
      assert.deepEqual([all.look("net", wide, [pool]).length, all.all().length], [count, count], use);
    }
  });

  it("are none of a pool for other networks; what may be one of its own is told", () => {
    const wide = setsOf({ subnet: "10.20.0.0/24" });
    for (const [networks, overlaps, parts] of [
      [["net"], 1, 1],
      [["shop/net", "other"], 1, 1],
      [["other"], 0, 0],
      [["shop/other"], 1, 0],
    ] as const) {
      const all = new RangeOverlaps(noopLogger);
      const found = all.look("net", wide, [{ ...DB, spec: { ...DB.spec, networks } }]);
      assert.deepEqual([all.all().length, found.length], [overlaps, parts], networks.join());
    }
  });

  it("are not what the pool excludes", () => {
    const cidr = "10.20.0.0/24";
    const carved = poolOf("db", { cidr, exclude: ["10.20.0.100-10.20.0.199", "10.20.0.250"] });
    const part = { subnet: cidr, rangeStart: "10.20.0.100" };
    assert.deepEqual(found(setsOf({ ...part, rangeEnd: "10.20.0.199" }), carved), []);
    assert.deepEqual(found(setsOf({ ...part, rangeEnd: "10.20.0.210" }), carved), [
      "db: 10.20.0.200-10.20.0.210",
    ]);
  });

  it("are told in the log once, and again when they are others", () => {
    const reported: LogFields[] = [];
    const overlaps = new RangeOverlaps({
      ...noopLogger,
      warn: (_, fields = {}) => void reported.push(fields),
    });
    const addresses = () =>
      reported.splice(0).map(({ network, pool, address }) => [network, pool, address].join(" "));
    const [whole, half] = [setsOf({ subnet: "10.20.0.0/24" }), setsOf({ subnet: "10.20.0.0/26" })];
    for (const sets of [whole, whole]) overlaps.look("net", sets, [DB]);
    assert.deepEqual(addresses(), ["net db 10.20.0.50-10.20.0.99"]);
    overlaps.look("other", whole, [DB]);
    overlaps.look("net", half, [DB]);
    assert.deepEqual(addresses(), ["other db 10.20.0.50-10.20.0.99", "net db 10.20.0.50-10.20.0.62"]);
    overlaps.look("net", half, []);
    assert.deepEqual(
      overlaps.all().map(({ network }) => network),
      ["other"],
    );
    assert.deepEqual(addresses(), []);
  });

  it("are remembered of a bounded number of networks", () => {
    const overlaps = new RangeOverlaps(noopLogger);
    const sets = setsOf({ subnet: "10.20.0.0/24" });
    for (let i = 0; i < 300; i++) overlaps.look(`net-${i}`, sets, [DB]);
    assert.deepEqual([...overlaps.networksByPool()], [["db", 256]]);
    assert.equal(overlaps.all().at(-1)?.network, "net-299");
  });

  for (const verb of ["STATUS", "ADD"]) {
    it(`are looked for at ${verb}, and it succeeds`, async () => {
      const node = await NodeBench.open();
      try {
        const { metrics, of } = exposed();
        measureNode({ ...node.parts, metrics }, "/nowhere/spool");
        node.ipam = { ranges: [[{ subnet: "10.20.0.0/24" }]] };
        node.blockSource.stored.set("db", DB);
        assert.equal((await node.call(verb)).exitStatus, 0);
        assert.deepEqual(await of("berth_agent_ranges_in_pools"), ['{pool="db"} 1']);
      } finally {
        await node.close();
      }
    });
  }
});
