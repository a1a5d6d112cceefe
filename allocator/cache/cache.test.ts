// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, claimRecord, DB_POOL, poolRecord, reservationRecord } from "../../test/support/fixtures.ts";
import { type Logger, noopLogger } from "../base/ports.ts";
import type { Block } from "../model/block.ts";
import { RecordCache } from "./cache.ts";
import { pickable, put, TINY } from "./testing/picks.ts";

describe("a relist", () => {
  it("drops what did not come again when it is over, and not before", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "claim", claimRecord(), claimRecord({ name: "mysql-1" }));
    cache.apply("claim", { type: "relist" });
    put(cache, "claim", claimRecord());
    assert.ok(cache.claim("shop/mysql-1"));
    cache.apply("claim", { type: "synced" });
    assert.deepEqual(
      [...cache.claims()].map(({ key }) => key),
      ["shop/mysql-0"],
    );
  });

  it("that is broken off by another one leaves nothing behind", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", TINY, DB_POOL);
    cache.apply("pool", { type: "relist" });
    put(cache, "pool", poolRecord("web", "10.30.0.0/29"));
    cache.apply("pool", { type: "relist" });
    put(cache, "pool", DB_POOL);
    cache.apply("pool", { type: "synced" });
    assert.deepEqual(
      cache.pools().map(({ name }) => name),
      ["db"],
    );
    assert.equal(cache.poolRecord("web"), undefined);
  });

  it("of one kind touches no other", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", TINY);
    put(cache, "reservation", reservationRecord("10.0.0.4", { pool: "tiny" }));
    cache.apply("reservation", { type: "relist" });
    cache.apply("reservation", { type: "synced" });
    assert.deepEqual([cache.pools().length, [...cache.reservations()].length], [1, 0]);
    assert.equal(pickable(cache, "tiny"), "10.0.0.4 10.0.0.5 10.0.0.6");
  });

  it("makes the cache ready once each kind was listed whole", () => {
    const cache = new RecordCache(noopLogger);
    const ready: boolean[] = [];
    for (const kind of ["pool", "claim", "claim", "reservation"] as const) {
      cache.apply(kind, { type: "relist" });
      ready.push(cache.ready);
      cache.apply(kind, { type: "synced" });
    }
    assert.deepEqual([...ready, cache.ready], [false, false, false, false, true]);
  });
});

describe("pools of a cache", () => {
  it("come by priority, then by name", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", poolRecord("b", "10.1.0.0/29"), poolRecord("a", "10.2.0.0/29"));
    put(
      cache,
      "pool",
      poolRecord("c", "10.3.0.0/29", { priority: 1 }),
      poolRecord("d", "10.4.0.0/29", { priority: -1 }),
    );
    assert.deepEqual(
      cache.pools().map(({ name }) => name),
      ["c", "a", "b", "d"],
    );
    assert.equal(cache.poolOf(addr("10.4.0.2"))?.name, "d");
    assert.equal(cache.poolOf(addr("10.5.0.2")), undefined);
  });

  it("that cannot be read hand out nothing and say so", () => {
    const said: unknown[] = [];
    const log: Logger = {
      ...noopLogger,
      error: (message, fields) => void said.push([message, fields?.["pool"], fields?.["code"]]),
    };
    const cache = new RecordCache(log);
    put(cache, "pool", TINY);
    put(cache, "pool", { name: "tiny", spec: { ranges: [{ cidr: "10.0.0.7/29" }] } });
    assert.deepEqual(said, [["pool cannot be used", "tiny", "POOL_INVALID"]]);
    assert.deepEqual(
      [cache.pool("tiny"), cache.poolOf(addr("10.0.0.4")), cache.pools()],
      [undefined, undefined, []],
    );
    assert.ok(cache.poolRecord("tiny"));
  });
});

describe("what must not be picked", () => {
  it("follows reservations, and keeps what the pool itself blocks", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", TINY);
    assert.equal(pickable(cache, "tiny"), "10.0.0.4 10.0.0.5 10.0.0.6");
    put(
      cache,
      "reservation",
      reservationRecord("10.0.0.3", { pool: "tiny" }),
      reservationRecord("10.0.0.4", { pool: "tiny" }),
    );
    put(cache, "reservation", reservationRecord("10.0.0.5", { pool: "tiny", releasedAt: 1 }));
    assert.equal(pickable(cache, "tiny"), "10.0.0.6");
    for (const key of ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"])
      cache.apply("reservation", { type: "gone", key });
    assert.equal(pickable(cache, "tiny"), "10.0.0.4 10.0.0.5 10.0.0.6");
  });

  it("follows the pool", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "reservation", reservationRecord("10.0.0.4", { pool: "tiny" }));
    put(cache, "pool", TINY);
    assert.equal(pickable(cache, "tiny"), "10.0.0.5 10.0.0.6");
    put(cache, "pool", poolRecord("tiny", ["10.0.0.0/30", "fd00::/126"]));
    assert.equal(pickable(cache, "tiny"), "10.0.0.1 10.0.0.2 fd00::1 fd00::2 fd00::3");
    put(cache, "pool", poolRecord("tiny", "10.0.0.0/29", { reserved: ["10.0.0.6"] }));
    assert.equal(pickable(cache, "tiny"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.5");
  });
});

describe("counts", () => {
  it("are of addresses that are held, by pool and namespace", () => {
    const cache = new RecordCache(noopLogger);
    const bank = { claim: { namespace: "bank", name: "ledger-0" } };
    put(
      cache,
      "reservation",
      reservationRecord("10.0.0.4"),
      reservationRecord("10.0.0.5"),
      reservationRecord("10.0.0.6", bank),
    );
    assert.deepEqual(
      [held(cache, "db", "shop"), held(cache, "db", "bank"), held(cache, "web", "shop")],
      [2, 1, 0],
    );
    put(
      cache,
      "reservation",
      reservationRecord("10.0.0.4", { releasedAt: 1 }),
      reservationRecord("10.0.0.5", bank),
    );
    assert.deepEqual([held(cache, "db", "shop"), held(cache, "db", "bank")], [0, 2]);
    assert.deepEqual([cache.cooling("db", "shop").IPv4, cache.cooling("db", "bank").IPv4], [1, 0]);
    cache.apply("reservation", { type: "gone", key: "10.0.0.4" });
    cache.apply("reservation", { type: "gone", key: "10.0.0.5" });
    cache.apply("reservation", { type: "gone", key: "10.0.0.5" });
    assert.deepEqual([held(cache, "db", "shop"), held(cache, "db", "bank")], [0, 1]);
    assert.equal(cache.cooling("db", "shop").IPv4, 0);
  });

  it("are of all addresses that have a reservation, by pool", () => {
    const cache = new RecordCache(noopLogger);
    const bank = { claim: { namespace: "bank", name: "ledger-0" } };
    const cooling = reservationRecord("10.0.0.5", { ...bank, releasedAt: 1 });
    put(cache, "reservation", reservationRecord("10.0.0.4"), cooling);
    put(cache, "reservation", reservationRecord("10.0.1.4", { pool: "db-2" }), reservationRecord("fd00::4"));
    assert.deepEqual(cache.taken("db"), { IPv4: 2, IPv6: 1 });
    assert.deepEqual(cache.taken("web"), { IPv4: 0, IPv6: 0 });
    cache.apply("reservation", { type: "gone", key: "10.0.0.5" });
    assert.deepEqual(cache.taken("db"), { IPv4: 1, IPv6: 1 });
  });

  it("leaves to a node what its block has, but for the holes", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", poolRecord("db", "10.0.0.0/29", { blockSize: { ipv4: 30 } }));
    const block: Block = {
      cidr: "10.0.0.4/30",
      pool: "db",
      node: "node-a",
      nodeUID: "u",
      holes: ["10.0.0.5/32"],
    };
    assert.equal(pickable(cache, "db"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6");
    put(cache, "block", block);
    put(cache, "reservation", reservationRecord("10.0.0.6"));
    cache.apply("reservation", { type: "gone", key: "10.0.0.6" });
    assert.equal(pickable(cache, "db"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.5");
    assert.deepEqual(
      [...cache.blocksOf("db")].map(({ record }) => record),
      [block],
    );
    const single: Block = { ...block, cidr: "10.0.0.4/32", node: "node-b", holes: [], within: block.cidr };
    put(cache, "block", single);
    assert.equal(cache.blockOwning(addr("10.0.0.4"))?.node, "node-b");
    cache.apply("block", { type: "gone", key: single.cidr });
    assert.equal(cache.blockOwning(addr("10.0.0.4"))?.node, "node-a");
    assert.equal(pickable(cache, "db"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.5");
    cache.apply("block", { type: "gone", key: block.cidr });
    assert.equal(pickable(cache, "db"), "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6");
    assert.deepEqual([...cache.blocksOf("db")], []);
  });

  it("leaves to a node what a block of another pool has, where two overlap or one was shortened", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", poolRecord("fix", "10.0.0.0/29"));
    put(cache, "pool", poolRecord("blk", "10.0.0.0/29", { blockSize: { ipv4: 30 } }));
    put(cache, "pool", poolRecord("old", "10.0.9.0/24", { blockSize: { ipv4: 31 } }));
    const all = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6";
    assert.equal(pickable(cache, "fix"), all);
    const block = { node: "node-a", nodeUID: "u", granted: true };
    const [large, outside] = ["10.0.0.4/30", "10.0.0.2/31"];
    put(cache, "block", { ...block, cidr: large, pool: "blk", holes: ["10.0.0.5/32"] });
    put(cache, "block", { ...block, cidr: outside, pool: "old", holes: [] });
    for (const pool of ["fix", "blk"]) assert.equal(pickable(cache, pool), "10.0.0.1 10.0.0.5");
    assert.equal(cache.blockOwning(addr("10.0.0.4"))?.pool, "blk");
    assert.equal(cache.blockOwning(addr("10.0.0.3"))?.pool, "old");
    assert.equal(cache.strayBlock(addr("10.0.0.4")), undefined, "its name follows from its pool");
    assert.equal(cache.strayBlock(addr("10.0.0.3"))?.cidr, outside);
    const fix = cache.pool("fix") ?? assert.fail();
    assert.deepEqual(
      [...cache.blocksOver(fix, "IPv4")].map(({ block: { cidr } }) => cidr),
      [large, outside],
    );
    for (const key of [large, outside]) cache.apply("block", { type: "gone", key });
    assert.equal(pickable(cache, "fix"), all);
    assert.deepEqual([...cache.blocksOver(fix, "IPv4")], []);
  });
});

/** Of both families together. */
function held(view: RecordCache, pool: string, namespace: string): number {
  const { IPv4, IPv6 } = view.held(pool, namespace);
  return IPv4 + IPv6;
}

describe("records of a cache", () => {
  it("can be asked for by what they are, without the others", () => {
    const cache = new RecordCache(noopLogger);
    const retained = { since: 1, because: "scaled" } as const;
    put(cache, "claim", claimRecord(), claimRecord({ name: "mysql-1", retained }));
    put(cache, "claim", claimRecord({ name: "next", takesOver: "mysql-0" }));
    const names = (of: "retained" | "successors") => [...cache.claims(of)].map(({ key }) => key);
    assert.deepEqual([names("retained"), names("successors")], [["shop/mysql-1"], ["shop/next"]]);
  });

  it("can be asked for by workload and pool, without the others", () => {
    const cache = new RecordCache(noopLogger);
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "other", ordinal: 0 };
    put(cache, "claim", claimRecord(), claimRecord({ name: "other-0", identity }));
    put(cache, "reservation", reservationRecord("10.0.0.4"), reservationRecord("10.0.1.4", { pool: "web" }));
    const claims = [...cache.claims({ kind: "StatefulSet", namespace: "shop", name: "other" })];
    assert.deepEqual(
      claims.map(({ key }) => key),
      ["shop/other-0"],
    );
    assert.deepEqual(
      [...cache.reservations("web")].map(({ key }) => key),
      ["10.0.1.4"],
    );
  });
});
