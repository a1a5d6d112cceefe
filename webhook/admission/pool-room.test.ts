// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../allocator/model/block.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { settledSize } from "../../allocator/pool/settled-size.ts";
import { HastyClock } from "../../test/support/clock.ts";
import { poolRecord, viewOf } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, poolObject, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { validatePools } from "./validate-pool.ts";

const BLOCK: Block = {
  ...{ cidr: "10.60.0.100/32", pool: "ed", node: "node-a", nodeUID: "u", holes: [], granted: true },
};
const ED = poolRecord("ed", "10.60.0.0/24", { blockSize: { ipv4: 32 } });

/** As in a cluster, where the API server stores what passes, and by a view that has heard of nothing yet. */
function reviewer(world: World) {
  const { embedded: _, ...rest } = world.admission;
  const admission: AdmissionContext = { ...rest, context: { ...world.context, view: viewOf({}) } };
  const handler = validatePools(admission);
  return async (name: string, spec: Json, before?: PoolRecord, over = {}): Promise<string> => {
    const update = { ...over, ...(before && { oldObject: poolObject(name, { ...before.spec }) }) };
    const request = review(poolObject(name, spec), before === undefined ? "CREATE" : "UPDATE", update);
    const response = await handler(request, new AbortController().signal);
    return response.allowed ? "" : deniedAs(response);
  };
}

async function worldWith(pools: readonly PoolRecord[], blocks: readonly Partial<Block>[]): Promise<World> {
  const world = await openWorld({ pools });
  for (const block of blocks) await world.realStore.create("block", { ...BLOCK, ...block });
  return world;
}

describe("a pool that takes addresses, or lets go of some", () => {
  it("is refused where a node has a block of another pool, which the view has not heard of", async () => {
    await using world = await worldWith(
      [poolRecord("ed", "10.60.0.0/26", { blockSize: { ipv4: 32 } })],
      [{}],
    );
    const said = reviewer(world);
    const ranges = (over: Json = {}) => ({ ranges: [{ cidr: "10.60.0.0/24", from: "10.60.0.96", ...over }] });
    const words =
      "POOL_OVERLAPS: pool over contains 10.60.0.100 of block 10.60.0.100/32, which is of pool ed and a node's until that gives it back; exclude the block, or wait until it has gone (kubectl get ipblocks)";
    assert.equal(await said("over", ranges()), words);
    assert.equal(await said("over", ranges(), poolRecord("over", "10.70.0.0/24")), words);
    assert.equal(await said("over", ranges({ exclude: ["10.60.0.100"] })), "");
    const [stored] = await world.all("block");
    assert.ok(stored);
    await world.realStore.replace("block", stored, { ...stored.record, releasedAt: 5 });
    assert.equal(await said("over", ranges()), "", "what cools is nobody's");
  });

  it("keeps a block of its own that a pass has granted, and the view has not heard of", async () => {
    await using world = await worldWith([ED], [{}]);
    const said = reviewer(world);
    const short = { ...ED.spec, ranges: [{ cidr: "10.60.0.0/24", to: "10.60.0.99" }] };
    assert.equal(
      await said("ed", short, ED),
      "POOL_IN_USE: pool ed is in use: the change would leave out some of 10.60.0.100/32 (node-a); list the addresses in spec.reserved, and leave them out once the nodes have given the blocks back",
    );
    assert.equal(
      await said("ed", { ...ED.spec, ranges: [{ cidr: "10.60.0.0/24", to: "10.60.0.100" }] }, ED),
      "",
    );
  });

  it("waits for one that passed here a moment ago, until that is stored or never will be", async () => {
    const twin = (name: string): PoolRecord => poolRecord(name, "10.60.0.0/24");
    const overlaps = /^POOL_OVERLAPS: pools b and a both contain/;
    let stores = true;
    class StoringClock extends HastyClock {
      override async sleep(ms: number): Promise<void> {
        this.advance(ms);
        if (stores) await world.realStore.create("pool", twin("a"));
      }
    }
    const clock = new StoringClock();
    await using world = await openWorld({ clock });
    const said = reviewer(world);
    const start = clock.monotonic();
    assert.equal(await said("a", { ...twin("a").spec }, undefined, { dryRun: true }), "");
    assert.equal(await said("other", { ranges: [{ cidr: "10.61.0.0/24" }] }), "");
    assert.equal(await said("c", { ranges: [{ cidr: "10.62.0.0/24" }] }), "");
    assert.equal(clock.monotonic(), start, "nobody waits for what is elsewhere, or was asked for dry");
    assert.equal(await said("a", { ...twin("a").spec }), "");
    assert.match(await said("b", { ...twin("b").spec }), overlaps);
    assert.equal(clock.monotonic(), start + 50);
    const [stored] = await world.all("pool");
    assert.ok(stored);
    await world.realStore.remove("pool", stored);
    stores = false;
    assert.equal(await said("d", { ...twin("d").spec }), "", "that one has gone again");
    assert.equal(await said("e", { ...twin("e").spec }), "", "nobody stored that one");
    assert.ok(clock.monotonic() <= start + 2_100);
  });
});

describe("a pool that cannot stand as it is", () => {
  const HARMLESS: readonly Json[] = [
    { disabled: true },
    { cooldown: "2s" },
    { blockSize: { ipv4: 32, ahead: 0 } },
    { nodeSelector: { matchLabels: { zone: "a" } }, priority: 7 },
  ];

  for (const [title, pools, blocks] of [
    ["because another one has its addresses", [ED, poolRecord("other", "10.60.0.0/25")], [{}]],
    ["because a block is outside of its range", [ED], [{ cidr: "10.99.0.1/32" }, { cidr: "10.60.0.100/32" }]],
    ["because another's block lies in it", [ED], [{ pool: "gone" }]],
  ] as const) {
    it(`${title} may change in all but its addresses`, async () => {
      await using world = await worldWith(pools, blocks);
      const said = reviewer(world);
      for (const over of HARMLESS)
        assert.equal(await said("ed", { ...ED.spec, ...over }, ED), "", JSON.stringify(over));
      const refused = /^POOL_(?:OVERLAPS|IN_USE): /;
      assert.match(await said("ed", { ...ED.spec, reserved: ["10.60.0.9"] }, ED), refused);
      assert.match(
        await said("ed", { ...ED.spec, ranges: [{ cidr: "10.60.0.0/24", exclude: ["10.60.0.9"] }] }, ED),
        refused,
      );
      const disabled = { ...ED, spec: { ...ED.spec, disabled: true } };
      assert.match(await said("ed", { ...ED.spec }, disabled), refused, "it would take addresses again");
      assert.equal(await said("ed", { ...ED.spec, disabled: true, cooldown: "9s" }, disabled), "");
    });
  }

  it("on one host may be disabled as well", async () => {
    await using world = await openWorld({ pools: [ED, poolRecord("other", "10.60.0.0/25")] });
    const handler = validatePools(world.admission);
    const request = (over: Json) => review(poolObject("ed", { ...ED.spec, ...over }), "CREATE");
    const said = async (over: Json) => {
      const response = await handler(request(over), new AbortController().signal);
      return response.allowed ? "" : deniedAs(response);
    };
    assert.match(await said({ reserved: ["10.60.0.9"] }), /^POOL_OVERLAPS: /);
    assert.equal(await said({ disabled: true }), "");
    assert.match(await said({}), /^POOL_OVERLAPS: /);
  });
});

describe("a pool that shares an aligned block with another", () => {
  const part = (from: string, to: string, length = 29) => ({
    ranges: [{ cidr: "10.60.0.0/24", from: `10.60.0.${from}`, to: `10.60.0.${to}` }],
    blockSize: { ipv4: length },
  });
  const both = (block: string) =>
    `POOL_OVERLAPS: pools pb and pa both have addresses of block ${block}, and a block is of one pool: pa or pb could not give its own of them to pods that ask for nothing; `;
  const PA: PoolRecord = { name: "pa", spec: part("16", "20") };

  for (const on of ["a cluster", "one host"]) {
    it(`is refused in ${on}, and told where to begin or end, or which size to take`, async () => {
      await using world = await openWorld({ pools: [PA, { name: "pz", spec: part("80", "83", 30) }] });
      const handler = validatePools(world.admission);
      const onHost = async (name: string, spec: Json) => {
        const response = await handler(
          review(poolObject(name, spec), "CREATE", { dryRun: true }),
          new AbortController().signal,
        );
        return response.allowed ? "" : deniedAs(response);
      };
      const said = on === "a cluster" ? reviewer(world) : onHost;
      const size = (length: number) => `make it with spec.blockSize.ipv4: ${length}`;
      const block = both("10.60.0.16/29");
      assert.equal(
        await said("pb", part("21", "38")),
        `${block}begin spec.ranges[0] at 10.60.0.24 (from), or ${size(30)}`,
      );
      assert.equal(await said("pb", part("24", "38")), "");
      assert.equal(await said("pb", part("21", "38", 30)), "", "blocks of another size leave holes");
      assert.equal(await said("pb", part("8", "15")), "");
      assert.equal(await said("pb", part("21", "23")), `${block}${size(30)}`);
    });
  }

  it("is refused a change that leads to it, and not what it shared before", async () => {
    const PB: PoolRecord = { name: "pb", spec: part("24", "38") };
    await using world = await openWorld({ pools: [PA, PB] });
    const said = reviewer(world);
    assert.equal(
      await said("pb", part("21", "38"), PB),
      `${both("10.60.0.16/29")}begin spec.ranges[0] at 10.60.0.24 (from)`,
    );
    assert.equal(
      await said("pb", part("21", "23"), PB),
      `${both("10.60.0.16/29")}leave its addresses to pool pa`,
    );
    const old: PoolRecord = { name: "pb", spec: part("21", "38") };
    assert.equal(await said("pb", part("21", "60"), old), "");
    assert.equal(await said("pb", part("21", "38"), { ...old, spec: { ...old.spec, disabled: true } }), "");
  });

  it("is told to end before it, and of IPv6 its own size", async () => {
    const six = (from: string, to: string) => ({
      ranges: [{ cidr: "fd00::/64", from: `fd00::${from}`, to: `fd00::${to}` }],
      blockSize: { ipv6: 122 },
    });
    await using world = await openWorld({ pools: [{ name: "pa", spec: six("50", "7f") }] });
    assert.equal(
      await reviewer(world)("pb", six("1", "4f")),
      `${both("fd00::40/122")}end spec.ranges[0] at fd00::3f (to), or make it with spec.blockSize.ipv6: 123`,
    );
  });
});

describe("a pool that excludes more than a review has time for, in all ranges together", () => {
  const ranges = (each: number) =>
    [0, 1].map((n) => ({
      cidr: `fd01:${n}::/32`,
      exclude: Array.from({ length: each }, (_, i) => `fd01:${n}:${i.toString(16)}::/64`),
    }));
  const words =
    "POOL_INVALID: spec.ranges exclude 4098 entries together; at most 4096 are allowed in all ranges: write neighbours as one (a-b or a CIDR), or make several pools";

  it("is refused, and stays if it was made before", async () => {
    await using world = await openWorld({});
    const said = reviewer(world);
    const many = { ranges: ranges(2_049) };
    assert.equal(await said("new", many), words);
    assert.equal(await said("new", { ranges: ranges(2_048) }), "");
    const old: PoolRecord = { name: "old", spec: many };
    assert.equal(await said("old", { ...many, disabled: true }, old), "");
    assert.equal(await said("old", many, { name: "old", spec: { ranges: ranges(2_048) } }), words);
    // a size is found by reading all of it, and that review comes first
    assert.equal(settledSize({ ...many, default: true }), undefined);
  });
});
