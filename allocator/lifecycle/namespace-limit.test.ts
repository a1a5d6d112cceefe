// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { altered } from "../../test/simulation/altered.ts";
import { entries, podAllocation } from "../../test/support/allocation-requests.ts";
import { NOW, poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import { noopLogger } from "../base/ports.ts";
import { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import type { Request } from "../model/address-request.ts";
import { release } from "./release.ts";
import { reserve } from "./reserve.ts";

const LIMIT = 2;
const LIMITED = poolRecord("web", ["10.30.0.0/24", "fd00:30::/120"], { limits: { perNamespace: LIMIT } });

/** Processes whose view knows the pool, and never hears of anything else. */
function blind(world: World, count: number): readonly Context[] {
  const view = new RecordCache(noopLogger);
  view.apply("pool", { type: "relist" });
  for (const stored of world.cache.poolRecords()) view.apply("pool", { type: "put", stored });
  view.apply("pool", { type: "synced" });
  return Array.from({ length: count }, (_, n) => ({ ...world.another(n + 1), view }));
}

async function heldIn(world: World, namespace: string): Promise<number> {
  const claims = (await world.all("claim")).filter(({ record }) => record.namespace === namespace);
  return claims.reduce((sum, { record }) => sum + record.addresses.length, 0);
}

describe("limits.perNamespace", () => {
  it("is not passed by any number of requests at once, in one process or in several whose views lag", async () => {
    for (const processes of [1, 3]) {
      await using world = await openWorld({ pools: [LIMITED] });
      const contexts = blind(world, processes);
      const ask = (n: number) => {
        const allocation = podAllocation(world, `p-${n}`, { pools: ["web"], families: ["IPv4"] });
        return reserve(contexts[n % processes] as Context, allocation, "pod");
      };
      const got = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n)));
      const held = await heldIn(world, "shop");
      assert.ok(held <= LIMIT, `${held} addresses at a limit of ${LIMIT}`);
      assert.equal(got.filter((each) => !isRefusal(each)).length, held, "whoever was granted has it");
      if (processes === 1) assert.equal(held, LIMIT, "one process gives all that may be given");
      const refused = got.filter(isRefusal).map(({ code }) => code);
      assert.deepEqual([...new Set(refused)], ["LIMIT_REACHED"]);
      assert.equal((await world.all("reservation")).length, held, "nothing is left of the others");
    }
  });

  it("is reached by requests that come together, however they name the pool or are led to it", async () => {
    const requests: readonly Request[] = [
      { pools: ["web/IPv4"] },
      { pools: ["10.30.0.0/24"] },
      { ...entries("10.40.0.7"), pools: ["other", "web/IPv4"], fallback: "any" },
      { interfacePools: { net1: ["web/IPv4"] } },
    ];
    for (const request of requests) {
      await using world = await openWorld({ pools: [LIMITED, poolRecord("other", "10.40.0.7/32")] });
      await reserve(world.context, podAllocation(world, "first", entries("10.40.0.7"), "bank"), "pod");
      await world.settle();
      const ask = (n: number) => reserve(world.context, podAllocation(world, `p-${n}`, request), "pod");
      await Promise.all(Array.from({ length: 8 }, (_, n) => ask(n)));
      assert.equal(await heldIn(world, "shop"), LIMIT, JSON.stringify(request));
    }
  });

  it("counts both families of a claim, and no other namespace's", async () => {
    await using world = await openWorld({ pools: [LIMITED] });
    const [context] = blind(world, 1);
    assert.ok(context);
    const both = podAllocation(world, "a", { pools: ["web"] });
    assert.equal((await reserve(context, both, "pod")).kind, "reserved");
    const more = await reserve(context, podAllocation(world, "b", entries("10.30.0.7")), "pod");
    assert.deepEqual(isRefusal(more) && [more.code, more.message], [
      "LIMIT_REACHED",
      'namespace shop holds 2 of the 2 addresses that pool "web" allows one namespace; release one, or ask for a higher limits.perNamespace',
    ]);
    assert.equal(
      (await reserve(context, podAllocation(world, "b", { pools: ["web"] }, "bank"), "pod")).kind,
      "reserved",
    );
    assert.equal((await reserve(context, both, "pod")).kind, "reserved", "who has his addresses keeps them");
    assert.deepEqual([await heldIn(world, "shop"), await heldIn(world, "bank")], [2, 2]);
  });

  it("costs no list where the view comes to show what was taken, and one where the namespace has too much", async () => {
    let lists = 0;
    await using world = await openWorld({
      pools: [poolRecord("web", "10.30.0.0/24", { limits: { perNamespace: 30 } })],
      wrap: (store) =>
        altered(store, {
          list: (kind, namespace) => {
            lists++;
            return store.list(kind, namespace);
          },
        }),
    });
    const clock = { now: () => NOW, monotonic: () => 0, sleep: async () => void (await nextTurn()) };
    const contexts = [1, 2, 3].map((seed) => ({ ...world.another(seed), clock }));
    const ask = (n: number) =>
      reserve(contexts[n % 3] as Context, podAllocation(world, `p-${n}`, { pools: ["web"] }), "pod");
    for (let n = 0; n < 24; n++) assert.equal((await ask(n)).kind, "reserved");
    assert.equal(lists, 0);
    const got = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(100 + n)));
    const held = await heldIn(world, "shop");
    assert.ok(held <= 30, `${held} addresses at a limit of 30`);
    assert.equal(got.filter((each) => !isRefusal(each)).length, held - 24);
  });

  it("bounds what cools as well, however fast a namespace makes and deletes pods, in several processes at once", async () => {
    const limit = 4;
    await using world = await openWorld({
      pools: [poolRecord("web", "10.30.0.0/26", { limits: { perNamespace: limit } })],
    });
    const clock = { now: () => NOW, monotonic: () => 0, sleep: async () => void (await nextTurn()) };
    const contexts = [1, 2, 3].map((seed) => ({ ...world.another(seed), clock }));
    const refused: string[] = [];
    const churn = async (context: Context, name: string) => {
      const got = await reserve(context, podAllocation(world, name, { pools: ["web"] }), "pod");
      if (isRefusal(got)) refused.push(got.message);
      else await release(context, got.claim);
    };
    for (let round = 0; round < 10; round++) {
      await Promise.all(contexts.map((context, n) => churn(context, `p-${round}-${n}`)));
      const used = (await world.all("reservation")).length;
      assert.ok(used <= 2 * limit, `${used} addresses are held and cool at a limit of ${limit}`);
    }
    await world.settle();
    for (let n = 0; n < 2 * limit; n++) {
      await churn(world.context, `late-${n}`);
      await world.settle();
    }
    assert.equal((await world.all("reservation")).length, 2 * limit, "all pods may be replaced at once");
    assert.match(
      refused.at(-1) ?? "",
      /^namespace shop holds 0 addresses of pool "web", .* 8, .* and 8 more cool after their release; /,
    );
    const other = podAllocation(world, "a", { pools: ["web"] }, "bank");
    assert.equal((await reserve(world.context, other, "pod")).kind, "reserved");
    const [cooling] = await world.all("reservation");
    assert.ok(cooling);
    const { claim, address } = cooling.record;
    const again = podAllocation(world, claim.name, entries(address));
    assert.equal(
      (await reserve(world.context, again, "pod")).kind,
      "reserved",
      "what is its own is counted once",
    );
  });

  it("counts what a view that is behind shows as held, when its claim is gone", async () => {
    await using world = await openWorld({ pools: [LIMITED] });
    const [behind] = blind(world, 1);
    assert.ok(behind);
    for (const name of ["a", "b", "c", "d"]) {
      const ask = podAllocation(world, name, { pools: ["web"], families: ["IPv4"] });
      const got = await reserve(world.context, ask, "pod");
      assert.ok(!isRefusal(got));
      await world.settle();
      for (const stored of world.cache.reservations())
        (behind.view as RecordCache).apply("reservation", { type: "put", stored });
      await release(world.context, got.claim);
      await world.settle();
    }
    const got = await reserve(
      behind,
      podAllocation(world, "e", { pools: ["web"], families: ["IPv4"] }),
      "pod",
    );
    assert.equal(isRefusal(got) && got.code, "LIMIT_REACHED");
    assert.equal((await world.all("reservation")).length, 4);
  });

  it("costs no list where a pool has none, or none that is near", async () => {
    for (const pool of [
      poolRecord("web", "10.30.0.0/24", {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "shop" } },
      }),
      poolRecord("web", "10.30.0.0/24", { limits: { perNamespace: 1_000 } }),
      poolRecord("web", "10.30.0.0/20"),
    ]) {
      let lists = 0;
      await using world = await openWorld({
        pools: [pool],
        wrap: (store) =>
          altered(store, {
            list: (kind, namespace) => {
              lists++;
              return store.list(kind, namespace);
            },
          }),
      });
      const got = await reserve(world.context, podAllocation(world, "a", { pools: ["web"] }), "pod");
      assert.equal(got.kind, "reserved");
      assert.equal(lists, 0, JSON.stringify(pool.spec));
    }
  });
});

describe("a pool that says no limit", () => {
  const SHARED = poolRecord("web", ["10.30.0.0/26", "fd00:30::/64"]);
  const SHARE = 56;
  const ask = (world: World, context: Context, name: string, namespace = "shop") =>
    reserve(context, podAllocation(world, name, { pools: ["web"], families: ["IPv4"] }, namespace), "pod");

  it("leaves a tenth to other namespaces, however many one asks for at once, in several processes whose views lag", async () => {
    await using world = await openWorld({ pools: [SHARED] });
    const contexts = blind(world, 3);
    const got = await Promise.all(
      Array.from({ length: 100 }, (_, n) => ask(world, contexts[n % 3] as Context, `p-${n}`)),
    );
    const held = await heldIn(world, "shop");
    assert.ok(held <= SHARE, `${held} addresses at a share of ${SHARE}`);
    assert.equal(got.filter((each) => !isRefusal(each)).length, held, "whoever was granted has it");
    assert.equal((await world.all("reservation")).length, held, "nothing is left of the others");
    await world.settle();
    for (let n = 0; (await heldIn(world, "shop")) < SHARE; n++) await ask(world, world.context, `late-${n}`);
    await world.settle();
    const refused = await ask(world, world.context, "one-more");
    assert.deepEqual(isRefusal(refused) && [refused.code, refused.message], [
      "LIMIT_REACHED",
      'namespace shop holds 56 of the 62 IPv4 addresses of pool "web", which leaves 6 to other namespaces; release one, or ask for limits.perNamespace in the pool',
    ]);
    for (let n = 0; n < 6; n++) {
      assert.equal((await ask(world, world.context, `p-${n}`, "bank")).kind, "reserved");
      await world.settle();
    }
  });

  it("counts each family by itself, and takes nothing away", async () => {
    await using world = await openWorld({ pools: [poolRecord("web", ["10.30.0.0/28", "fd00:30::/124"])] });
    const both = (name: string) =>
      reserve(world.context, podAllocation(world, name, { pools: ["web"] }), "pod");
    for (let n = 0; n < 13; n++) {
      assert.equal((await both(`p-${n}`)).kind, "reserved");
      await world.settle();
    }
    const refused = await both("p-13");
    assert.ok(isRefusal(refused));
    assert.match(
      refused.message,
      /^namespace shop holds 13 of the 14 IPv4 addresses of pool "web", which leaves 1 /,
    );
    assert.equal((await both("p-0")).kind, "reserved", "who has his addresses keeps them");
  });
});
