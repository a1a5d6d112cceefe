// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { addr, parsed, poolRecord, reservationRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { isHole, withHole } from "../model/block.ts";
import { keyOf } from "../store/codec.ts";
import type { Stored } from "../store/store.ts";
import { finishGrant, grantBlocks } from "./grant.ts";
import { grantTo, of, WEB } from "./testing/grants-to-nodes.ts";

describe("a grant", () => {
  it("makes a block of the pool the node's, without what the pool keeps back", async () => {
    await using world = await openWorld({ pools: [WEB] });
    const got = await grantTo(world, "node-a");
    assert.ok(got);
    const { cidr, holes, ...rest } = got.record;
    assert.deepEqual(rest, { pool: "web", node: "node-a", nodeUID: "uid-of-node-a", granted: true });
    assert.deepEqual(
      (await world.all("block")).map(({ record }) => record),
      [got.record],
    );
    for (let i = 0; i < 3; i++) assert.ok(await grantTo(world, `node-${i}`));
    assert.equal(await grantTo(world, "node-late"), undefined);
    const first = (await world.all("block")).find(({ key }) => key === "10.0.0.0/30");
    const last = (await world.all("block")).find(({ key }) => key === "10.0.0.12/30");
    assert.deepEqual([first?.record.holes, last?.record.holes], [["10.0.0.0/32"], ["10.0.0.15/32"]]);
    assert.ok(cidr !== "10.0.0.4/30" || holes.length === 0);
  });

  it("leaves what is reserved in it, cools or is marked to those who have it", async () => {
    const pool = poolRecord("web", "10.0.0.4/30", { blockSize: { ipv4: 30 }, cooldown: "1h" });
    for (const over of [{}, { releasedAt: 0 }, { marked: true }]) {
      await using world = await openWorld({ pools: [pool] });
      await world.realStore.create("reservation", reservationRecord("10.0.0.5", { pool: "web", ...over }));
      const got = await grantTo(world, "node-a", { pool });
      assert.deepEqual(got?.record.holes, ["10.0.0.4/31", "10.0.0.7/32"]);
    }
  });

  it("lists the reservations for a block of more than 64 addresses, of its family alone", async () => {
    const pool = poolRecord("web", ["10.0.0.0/24", "fd00::/64"], { blockSize: { ipv4: 25, ipv6: 121 } });
    await using world = await openWorld({ pools: [pool] });
    for (const text of ["10.0.0.9", "10.0.0.200", "fd00::9", "10.9.0.9"])
      await world.realStore.create("reservation", reservationRecord(text, { pool: "web" }));
    for (const node of ["node-a", "node-b"]) assert.ok(await grantTo(world, node, { pool }));
    const holes = (await world.all("block")).map(({ key, record }) => [key, record.holes]);
    assert.deepEqual(Object.fromEntries(holes), {
      "10.0.0.0/25": ["10.0.0.0/32", "10.0.0.9/32"],
      "10.0.0.128/25": ["10.0.0.200/32", "10.0.0.255/32"],
    });
    const six = await grantTo(world, "node-a", { pool, family: "IPv6" });
    assert.equal(parseCidr(six?.record.cidr ?? "")?.prefixLength, 121);
  });

  it("of many blocks at once lists the reservations once, after the last of them was made, and reads what it cannot list", async () => {
    const pool = poolRecord("web", "10.0.0.0/23", { blockSize: { ipv4: 27 } });
    for (const isListed of [true, false]) {
      const log: string[] = [];
      await using world = await openWorld({
        pools: [pool],
        wrap: (store) =>
          altered(store, {
            create: (kind, record) => {
              log.push(`create ${kind}`);
              return store.create(kind, record);
            },
            get: (kind, key) => {
              if (kind === "reservation") log.push("get");
              return store.get(kind, key);
            },
            list: (kind, namespace) => {
              if (kind !== "reservation") return store.list(kind, namespace);
              log.push("list");
              if (!isListed) throw new BerthError("STATE_CORRUPT", "cannot be read");
              return store.list(kind, namespace);
            },
          }),
      });
      await world.realStore.create("reservation", reservationRecord("10.0.0.40", { pool: "web" }));
      log.length = 0;
      const view = { reservationCount: 1 };
      const requests = Array.from({ length: 20 }, (_, n) => of(`node-${n}`));
      const { granted: got } = await grantBlocks(
        { ...world.context, view },
        parsed(pool),
        requests,
        new IntervalSet(),
      );
      assert.equal(got.length, 16, "there are no more");
      assert.equal(log.lastIndexOf("create block") < log.indexOf("list"), true);
      assert.equal(log.filter((what) => what === "list").length, 1);
      assert.equal(log.includes("get"), !isListed);
      const holes = got.find(({ key }) => key === "10.0.0.32/27")?.record.holes;
      assert.deepEqual(holes, ["10.0.0.40/32"]);
    }
  });

  it("leaves out what others have, and not from Berth", async () => {
    await using world = await openWorld({ pools: [WEB] });
    world.cache.occupy(addr("10.0.0.2"), { kind: "pod", namespace: "shop", name: "calico" });
    const got = await grantTo(world, "node-a");
    const all = [got, ...(await Promise.all([1, 2, 3].map((n) => grantTo(world, `node-${n}`))))];
    const first = all.find((one) => one?.key === "10.0.0.0/30");
    assert.deepEqual(first?.record.holes, ["10.0.0.0/32", "10.0.0.2/32"]);
  });

  it("that a fixed address has changed meanwhile reads again", async () => {
    const pool = poolRecord("web", "10.0.0.0/23", { blockSize: { ipv4: 24 } });
    await using world = await openWorld({
      pools: [pool],
      wrap: (store) =>
        altered(store, {
          list: async function* (kind, namespace) {
            yield* store.list(kind, namespace);
            const made = await store.get("block", "10.0.0.0/24");
            if (kind !== "reservation" || made === undefined) return;
            if (isHole(made.record, addr("10.0.0.40"))) return;
            await store.create("reservation", reservationRecord("10.0.0.40", { pool: "web" }));
            await store.replace("block", made, withHole(made.record, addr("10.0.0.40")));
          },
        }),
    });
    const view = { reservationCount: 0 };
    const requests = [of("node-a"), of("node-b")];
    const { granted: got } = await grantBlocks(
      { ...world.context, view },
      parsed(pool),
      requests,
      new IntervalSet(),
    );
    assert.deepEqual(
      got.map(({ record }) => record.granted),
      [true, true],
    );
    const block = (await world.all("block")).find(({ key }) => key === "10.0.0.0/24");
    assert.deepEqual(block?.record.holes, ["10.0.0.0/32", "10.0.0.40/32"]);
  });

  it("takes a block away again that has nothing to give, and goes on to the next", async () => {
    await using world = await openWorld({ pools: [WEB] });
    for (let n = 1; n < 15; n++) {
      if (n !== 9)
        await world.realStore.create("reservation", reservationRecord(`10.0.0.${n}`, { pool: "web" }));
    }
    const got = await grantTo(world, "node-a");
    assert.deepEqual([got?.key, got?.record.holes], ["10.0.0.8/30", ["10.0.0.8/32", "10.0.0.10/31"]]);
    assert.equal(await grantTo(world, "node-b"), undefined);
    assert.equal((await world.all("block")).length, 1);
  });

  it("takes a block that cannot be read for somebody's, and goes on to the next", async () => {
    const pool = poolRecord("web", "10.0.0.0/29", { blockSize: { ipv4: 30 } });
    const asked: string[] = [];
    await using world = await openWorld({
      pools: [pool],
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind === "block" && asked.push(keyOf(kind, record)) === 1)
              throw new BerthError("STATE_CORRUPT", `block ${asked[0]} cannot be read`);
            return await store.create(kind, record);
          },
        }),
    });
    const got = await grantTo(world, "node-a", { pool });
    assert.deepEqual([asked.length, got?.key], [2, asked[1]]);
  });

  it("takes a reservation that cannot be read for somebody's", async () => {
    const pool = poolRecord("web", "10.0.0.4/30", { blockSize: { ipv4: 30 } });
    await using world = await openWorld({
      pools: [pool],
      wrap: (store) =>
        altered(store, {
          get: async (kind, key) => {
            if (key === "10.0.0.6") throw new BerthError("STATE_CORRUPT", "cannot be read");
            return await store.get(kind, key);
          },
        }),
    });
    assert.deepEqual((await grantTo(world, "node-a", { pool }))?.record.holes, [
      "10.0.0.4/32",
      "10.0.0.6/31",
    ]);
  });

  it("that broke off is finished by whoever comes upon it, for its owner", async () => {
    await using world = await openWorld({ pools: [WEB] });
    const record = { cidr: "10.0.0.4/30", pool: "web", node: "node-a", nodeUID: "u", holes: [] };
    const made = await world.realStore.create("block", record);
    const [one, other] = await Promise.all([
      finishGrant(world.context, made.stored),
      finishGrant(world.context, made.stored),
    ]);
    assert.deepEqual(one?.record, { ...record, granted: true });
    assert.deepEqual(other, one);
    await world.realStore.remove("block", one as Stored<"block">);
    assert.equal(await finishGrant(world.context, made.stored), undefined);
  });

  it("is none of a pool that is disabled, or has no blocks of the family", async () => {
    await using world = await openWorld();
    const disabled = { ...WEB, spec: { ...WEB.spec, disabled: true } };
    assert.equal(await grantTo(world, "node-a", { pool: disabled }), undefined);
    assert.equal(await grantTo(world, "node-a", { family: "IPv6" }), undefined);
    assert.equal(await grantTo(world, "node-a", { pool: poolRecord("web", "10.0.0.0/28") }), undefined);
    assert.deepEqual(await world.all("block"), []);
  });
});
