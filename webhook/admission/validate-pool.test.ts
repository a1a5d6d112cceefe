// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { deniedAs, type Json, poolObject, review } from "../../test/support/objects.ts";
import { admitPod } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { DB, names, opened, pin, said } from "../testing/pool-reviews.ts";
import { validatePools } from "./validate-pool.ts";

describe("a pool", () => {
  it("that becomes the default and has no blocks, or is not the only one, is told so", async () => {
    await using world = await openWorld({});
    const cut = (name: string, n: number, spec: Json) =>
      poolObject(name, { ranges: [{ cidr: `10.${n}.0.0/24` }], default: true, ...spec });
    assert.equal(await said(world, cut("plain", 1, { default: false })), "");
    assert.equal(
      await said(world, cut("plain", 1, {})),
      "pool plain serves no pod that asks for nothing, in spite of spec.default: it was made without that, and without spec.blockSize; make another pool for them",
    );
    const blockSize = { ipv4: 26 };
    assert.equal(await said(world, cut("rest", 2, { blockSize })), "", "the other has no blocks");
    assert.equal(
      await said(world, cut("more", 3, { blockSize })),
      "pool more is a default, as rest: of several that are open to a pod the one of the highest spec.priority serves it, then the first by name",
    );
    assert.equal(await said(world, cut("more", 3, { blockSize, cooldown: "1m" })), "", "it is told once");
    const zone = (name: string) => ({ matchLabels: { zone: name } });
    const inZone = (name: string, n: number) => cut(name, n, { blockSize, nodeSelector: zone(name) });
    assert.match(await said(world, inZone("east", 4)), /^pool east is a default, as more, rest: /);
    assert.match(await said(world, inZone("west", 5)), /^pool west is a default, as more, rest: /);
  });

  it("that is made the default without a size has single addresses for blocks, on one host too, and keeps them", async () => {
    await using world = await openWorld({});
    const spec = { ranges: [{ cidr: "10.1.0.0/24" }], default: true };
    const sizeNow = async () => (await world.all("pool")).map(({ record }) => record.spec.blockSize);
    assert.match(
      await said(world, poolObject("any", spec)),
      /^pool any has no spec.blockSize, and gets \{ipv4: 32\}: nodes get single addresses/,
    );
    assert.deepEqual(await sizeNow(), [{ ipv4: 32 }]);
    assert.equal(await said(world, poolObject("any", { ...spec, cooldown: "1m" })), "");
    assert.equal(await said(world, poolObject("any", { ...spec, default: false })), "");
    assert.deepEqual(await sizeNow(), [{ ipv4: 32 }]);
    assert.match(
      await said(world, poolObject("any", { ...spec, blockSize: { ipv4: 30 } })),
      /^POOL_INVALID: spec.blockSize never changes, also from none/,
    );
  });

  it("that passes can be used at once", async () => {
    await using world = await opened();
    assert.equal(await admitPod(world, pin("a", "10.20.0.70")), "10.20.0.70");
    await assertClean(world);
  });

  it("that has addresses from before that no pod can have may still be disabled", async () => {
    const ranges = [{ cidr: "169.254.7.0/24" }];
    await using world = await openWorld({ pools: [{ name: "old", spec: { ranges } }] });
    assert.equal(await said(world, poolObject("old", { ranges, disabled: true })), "");
  });

  const wrong: readonly (readonly [string, Json, string])[] = [
    ["without ranges", poolObject("p", {}), "POOL_INVALID: spec.ranges is missing"],
    [
      "of loopback addresses",
      poolObject("p", { ranges: [{ cidr: "127.1.0.0/24" }] }),
      "POOL_INVALID: spec.ranges[0] has addresses that no pod can have: 127.1.0.1-127.1.0.254 (loopback); take them out",
    ],
    [
      "of host bits",
      poolObject("p", { ranges: [{ cidr: "10.9.0.7/24" }] }),
      "POOL_INVALID: spec.ranges[0].cidr 10.9.0.7/24 has host bits; write 10.9.0.0/24",
    ],
    [
      "with a misspelt field",
      poolObject("p", { ranges: [{ cidr: "10.9.0.0/24" }], cooldwn: "5s" }),
      'POOL_INVALID: spec has an unknown field "cooldwn"; did you mean cooldown?',
    ],
    [
      "without a name",
      poolObject("", { ranges: [{ cidr: "10.9.0.0/24" }] }),
      'POOL_INVALID: metadata.name "" is not a DNS subdomain: lower-case letters, digits, - and .',
    ],
    [
      "that overlaps another",
      poolObject("p", { ranges: [{ cidr: "10.0.0.0/8", from: "10.20.0.250", to: "10.21.0.7" }] }),
      "POOL_OVERLAPS: pools p and db both contain 10.20.0.250-10.20.0.254; change from, to or cidr of one of them",
    ],
    [
      "that shares one address with another",
      poolObject("p", { ranges: [{ cidr: "10.20.0.0/24", from: "10.20.0.9", to: "10.20.0.9" }] }),
      "POOL_OVERLAPS: pools p and db both contain 10.20.0.9; change from, to or cidr of one of them",
    ],
    [
      "whose gateway another pool could give out",
      poolObject("p", {
        ranges: [{ cidr: "10.20.0.0/16", from: "10.20.5.0", to: "10.20.5.9", gateway: "10.20.0.77" }],
      }),
      "POOL_OVERLAPS: the gateway 10.20.0.77 of pool p could be given out by pool db; exclude it there",
    ],
    [
      "that is none",
      { ...DB, kind: "IPBlock" },
      "OBJECT_INVALID: this webhook decides about IPPool, and the object is of kind IPBlock; install the webhook configurations from the chart",
    ],
  ];
  for (const [title, object, words] of wrong) {
    it(`${title} is refused, dry or not`, async () => {
      await using world = await opened();
      assert.equal(await said(world, object), words);
      assert.equal(await said(world, object, { dryRun: true }), words);
      assert.deepEqual(await names(world), ["db"]);
    });
  }

  it("whose addresses hold another pool's gateway is refused", async () => {
    await using world = await openWorld({});
    await said(
      world,
      poolObject("edge", {
        ranges: [{ cidr: "10.20.0.0/16", from: "10.20.9.1", to: "10.20.9.9", gateway: "10.20.0.50" }],
      }),
    );
    assert.equal(
      await said(world, DB),
      "POOL_OVERLAPS: the gateway 10.20.0.50 of pool edge could be given out by pool db; exclude it there",
    );
    const aware = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.50"] }] });
    assert.equal(await said(world, aware), "");
  });

  it("beside another of the same network is no overlap", async () => {
    await using world = await opened();
    assert.equal(
      await said(
        world,
        poolObject("p", { ranges: [{ cidr: "10.20.0.0/16", from: "10.20.1.0", to: "10.20.1.9" }] }),
      ),
      "",
    );
    assert.equal(await said(world, DB, { operation: "UPDATE" }), "");
  });

  it("of two that overlap and come at the same moment is one too many", async () => {
    await using world = await openWorld({});
    const pools = Array.from({ length: 5 }, (_, n) =>
      poolObject(`p${n}`, { ranges: [{ cidr: "10.20.0.0/24" }] }),
    );
    const answers = await Promise.all(pools.map((object) => said(world, object)));
    assert.equal(answers.filter((answer) => answer === "").length, 1, answers.join("\n"));
    assert.equal((await names(world)).length, 1);
  });
});

describe("a review of a pool", () => {
  it("of its status is none of ours, and in a cluster nothing is written", async () => {
    await using world = await opened();
    assert.equal(await said(world, poolObject("db", {}), { subResource: "status" }), "");
    const { embedded: _, ...admission } = world.admission;
    const handler = validatePools(admission);
    const live = new AbortController().signal;
    const before = world.dump();
    const other = poolObject("other", { ranges: [{ cidr: "10.21.0.0/24" }] });
    assert.equal((await handler(review(other), live)).allowed, true);
    assert.equal((await handler(review(DB, "DELETE"), live)).allowed, true);
    assert.match(
      deniedAs(await handler(review(poolObject("other", { ranges: [{ cidr: "10.20.0.0/24" }] })), live)),
      /^POOL_OVERLAPS: /,
    );
    assert.equal(world.dump(), before);
  });
});
