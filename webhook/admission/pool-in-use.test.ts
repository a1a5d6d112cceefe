// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, claimRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { type Json, poolObject } from "../../test/support/objects.ts";
import { admitPod } from "../../test/support/reviewing.ts";
import { DB, names, opened, pin, said } from "../testing/pool-reviews.ts";

describe("a pool in use", () => {
  it("keeps the addresses that are reserved", async () => {
    await using world = await opened();
    for (let n = 0; n < 7; n++) await admitPod(world, pin(`pod-${n}`, `10.20.0.7${n}`));
    const shrunk = (over: Json) => poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", ...over }] });
    const before = world.dump();
    const inUse = (which: string) =>
      `POOL_IN_USE: pool db is in use: the change would leave out ${which}; release them first, or list them in spec.reserved, so that only who names one gets it, and leave them out once they are free`;
    assert.equal(
      await said(world, shrunk({ from: "10.20.0.72" }), { operation: "UPDATE" }),
      inUse("10.20.0.70 (shop/pod-0), 10.20.0.71 (shop/pod-1)"),
    );
    assert.equal(
      await said(world, shrunk({ exclude: ["10.20.0.75"] }), { operation: "UPDATE" }),
      inUse("10.20.0.75 (shop/pod-5)"),
    );
    assert.equal(
      await said(world, shrunk({ gateway: "10.20.0.76" }), { operation: "UPDATE" }),
      inUse("10.20.0.76 (shop/pod-6)"),
    );
    assert.equal(
      await said(world, shrunk({ to: "10.20.0.9" }), { operation: "UPDATE" }),
      inUse(
        "10.20.0.70 (shop/pod-0), 10.20.0.71 (shop/pod-1), 10.20.0.72 (shop/pod-2), 10.20.0.73 (shop/pod-3), 10.20.0.74 (shop/pod-4) and 2 more",
      ),
    );
    assert.equal(world.dump(), before);
    assert.equal(
      await said(world, shrunk({ from: "10.20.0.70", to: "10.20.0.76" }), { operation: "UPDATE" }),
      "",
    );
    assert.equal(
      await said(world, poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }], reserved: ["10.20.0.70"] }), {
        operation: "UPDATE",
      }),
      "",
    );
    await assertClean(world);
  });

  it("says until when a retained claim keeps an address", async () => {
    await using world = await opened();
    const retained = { because: "scaled", since: world.clock.now() } as const;
    const kept = async (name: string, address: string, ttlMs: number | null) => {
      const retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs } as const;
      const claim = claimRecord({ name, nonce: name, addresses: addrs(address), retained, retention });
      await world.realStore.create("claim", claim);
      for (const one of reservationsOf(claim)) await world.realStore.create("reservation", one);
    };
    await kept("a", "10.20.0.70", 3_600_000);
    await world.settle();
    const until = new Date(world.clock.now() + 3_600_000).toISOString().replace(".000Z", "Z");
    assert.equal(
      await said(world, DB, { operation: "DELETE" }),
      `POOL_IN_USE: pool db is in use: it still holds 10.20.0.70 (shop/a, kept until ${until}); release them first, or set disabled: true and wait`,
    );
  });

  it("may leave out an address that cools, which nobody relies on", async () => {
    await using world = await opened();
    const claim = claimRecord({ name: "a", addresses: addrs("10.20.0.70") });
    for (const one of reservationsOf(claim))
      await world.realStore.create("reservation", { ...one, releasedAt: world.clock.now() });
    await world.settle();
    const without = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.70"] }] });
    assert.equal(await said(world, without, { operation: "UPDATE" }), "");
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
    assert.equal(await said(world, without), "");
    await assertClean(world);
  });

  it("is not deleted until nothing is held", async () => {
    await using world = await opened();
    await admitPod(world, pin("a", "10.20.0.70"));
    assert.equal(
      await said(world, DB, { operation: "DELETE" }),
      "POOL_IN_USE: pool db is in use: it still holds 10.20.0.70 (shop/a); release them first, or set disabled: true and wait",
    );
    world.clock.advance(120_000);
    const collector = world.collector();
    await collector.pass();
    await world.settle();
    assert.equal(await said(world, DB, { operation: "DELETE", dryRun: true }), "");
    assert.deepEqual(await names(world), ["db"]);
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
    assert.deepEqual(await names(world), []);
    await assertClean(world);
    await collector.pass();
    assert.equal((await world.all("reservation")).length, 1, "it cools, whoever makes a pool of it next");
    world.clock.advance(30_000);
    await collector.pass();
    assert.deepEqual(await world.all("reservation"), []);
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
  });

  it("that is disabled gives nothing new and keeps what it gave", async () => {
    await using world = await opened();
    await admitPod(world, pin("a", "10.20.0.70"));
    const spec = DB["spec"] as Json;
    assert.equal(
      await said(world, poolObject("db", { ...spec, disabled: true }), { operation: "UPDATE" }),
      "",
    );
    assert.equal(
      await admitPod(world, pin("b", "10.20.0.71")),
      'POOL_DISABLED: pool "db" is disabled (spec.disabled: true); ask for an address of another pool',
    );
    assert.equal(await admitPod(world, pin("a", "10.20.0.70")), "10.20.0.70");
    await world.settle();
    assert.equal(
      await said(world, poolObject("db", { ...spec, disabled: true }), { operation: "DELETE" }),
      "POOL_IN_USE: pool db is in use: it still holds 10.20.0.70 (shop/a); it is disabled, and pods that have addresses of it keep them: end those pods and release what is kept without one, or wait",
    );
  });
});
