// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addr,
  addrs,
  claimRecord,
  DB_POOL,
  poolRecord,
  reservationRecord,
  storedAs,
} from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { BerthError } from "../base/errors.ts";
import { type Logger, noopLogger } from "../base/ports.ts";
import { FAMILIES, fromNumber, toNumber } from "../ip/address.ts";
import { pickFree } from "../ip/free-address.ts";
import type { Block } from "../model/block.ts";
import { intervalsOf, type PoolRecord } from "../pool/pool.ts";
import type { Change, Kind, Records, Store, Stored } from "../store/store.ts";
import { RecordCache } from "./cache.ts";
import type { RecordReader } from "./reader.ts";
import { syncCache } from "./sync.ts";

function put<K extends Kind>(cache: RecordCache, kind: K, ...records: readonly Records[K][]): Stored<K>[] {
  const all = records.map((record) => storedAs(kind, record));
  for (const stored of all) cache.apply(kind, { type: "put", stored });
  return all;
}

/** Every address of the pool that may be picked, as long as pools are as small as they are here. */
function pickable(view: RecordReader, name: string): string {
  const pool = view.pool(name);
  assert.ok(pool !== undefined, name);
  return FAMILIES.flatMap((family) =>
    [...pickFree(intervalsOf(pool, family), view.unpickable(pool, family), 0n)].map((n) =>
      fromNumber(n, family),
    ),
  ).join(" ");
}

const TINY: PoolRecord = {
  name: "tiny",
  spec: {
    ranges: [{ cidr: "10.0.0.0/29", gateway: "10.0.0.1", exclude: ["10.0.0.2"] }],
    reserved: ["10.0.0.3"],
  },
};

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

  it("makes the mirror ready once each kind was listed whole", () => {
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

describe("pools of a mirror", () => {
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

const POOLS: readonly PoolRecord[] = [
  TINY,
  poolRecord("tiny", "10.0.0.0/28"),
  poolRecord("tiny", ["10.0.0.0/30", "fd00::/126"]),
  poolRecord("twin", "10.0.0.0/29"), // overlaps tiny, as two pools may for a moment
  poolRecord("twin", "10.0.1.0/29", { reserved: ["10.0.1.2"], priority: 3 }),
  { name: "twin", spec: { ranges: [{ cidr: "10.0.0.3/29" }] } },
];
const ADDRESSES = addrs(
  "10.0.0.1",
  "10.0.0.2",
  "10.0.0.3",
  "10.0.0.4",
  "10.0.0.9",
  "10.0.1.2",
  "10.0.1.3",
  "fd00::1",
);

const BLOCKS = ["10.0.0.2/31", "10.0.0.4/30", "10.0.1.2/31", "fd00::/127", "10.0.0.2/32", "10.0.0.4/32"];

type Step = { readonly kind: Kind; readonly change: Change<Kind> } | "look";

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>("look"),
  fc
    .constantFrom<Kind>("pool", "claim", "reservation", "block")
    .chain((kind) =>
      fc.constantFrom("relist" as const, "synced" as const).map((type): Step => ({ kind, change: { type } })),
    ),
  fc
    .constantFrom(...POOLS)
    .map((pool): Step => ({ kind: "pool", change: { type: "put", stored: storedAs("pool", pool) } })),
  fc.constantFrom("tiny", "twin").map((key): Step => ({ kind: "pool", change: { type: "gone", key } })),
  fc
    .tuple(
      fc.constantFrom(...ADDRESSES),
      fc.constantFrom("tiny", "twin"),
      fc.constantFrom("shop", "bank"),
      fc.boolean(),
    )
    .map(([address, pool, namespace, cooling]): Step => {
      const over = { pool, claim: { namespace, name: "mysql-0" }, ...(cooling ? { releasedAt: 1 } : {}) };
      return {
        kind: "reservation",
        change: { type: "put", stored: storedAs("reservation", reservationRecord(address, over)) },
      };
    }),
  fc.constantFrom(...ADDRESSES).map((key): Step => ({ kind: "reservation", change: { type: "gone", key } })),
  fc
    .record({
      cidr: fc.constantFrom(...BLOCKS),
      pool: fc.constantFrom("tiny", "twin"),
      holes: fc.subarray(["10.0.0.2/32", "10.0.0.4/31"]),
    })
    .map(({ cidr, pool, holes }): Step => {
      const around = BLOCKS.find((one) => one !== cidr && one.startsWith(`${cidr.split("/")[0]}/`));
      const within = cidr.endsWith("/32") && around !== undefined ? { within: around } : {};
      const block: Block = { cidr, pool, node: "node-a", nodeUID: "", holes, ...within };
      return { kind: "block", change: { type: "put", stored: storedAs("block", block) } };
    }),
  fc.constantFrom(...BLOCKS).map((key): Step => ({ kind: "block", change: { type: "gone", key } })),
);

/** Everything that a view tells, as one value. */
function told(view: RecordCache): unknown {
  const byKey = (a: Stored<Kind>, b: Stored<Kind>) => (a.key < b.key ? -1 : 1);
  return {
    pools: view.pools().map(({ name, spec }) => ({ name, spec, pickable: pickable(view, name) })),
    reservations: [...view.reservations()].sort(byKey),
    use: ["tiny", "twin"].flatMap((pool) =>
      ["shop", "bank"].map((namespace) => [view.held(pool, namespace), view.cooling(pool, namespace)]),
    ),
    blocks: BLOCKS.map((cidr) => view.block(cidr)),
    owning: ADDRESSES.map((address) => view.blockOwning(address)?.cidr),
    over: view.pools().flatMap((pool) => {
      const parts = [...view.blocksOver(pool, "IPv4"), ...view.blocksOver(pool, "IPv6")];
      return parts.map(({ block: { cidr } }) => `${pool.name} ${cidr}`).sort();
    }),
    homes: ADDRESSES.map((address) => [toNumber(address), view.poolOf(address)?.name]),
  };
}

/** A mirror that has seen only what is left in this one. */
function afreshFrom(cache: RecordCache): RecordCache {
  const fresh = new RecordCache(noopLogger);
  for (const stored of cache.reservations()) fresh.apply("reservation", { type: "put", stored });
  for (const stored of ["twin", "tiny"].flatMap((pool) => [...cache.blocksOf(pool)]))
    fresh.apply("block", { type: "put", stored });
  for (const name of ["twin", "tiny"]) {
    const stored = cache.poolRecord(name);
    if (stored !== undefined) fresh.apply("pool", { type: "put", stored });
  }
  return fresh;
}

describe("a mirror after any changes", () => {
  it("is what one is that saw only what is left", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40 }), (changes) => {
        const cache = new RecordCache(noopLogger);
        for (const step of changes) {
          if (step === "look") told(cache);
          else cache.apply(step.kind, step.change);
        }
        const fresh = afreshFrom(cache);
        assert.deepEqual(told(cache), told(fresh));
      }),
      { numRuns: runsOf(2_000) },
    );
  });
});

describe("follow", () => {
  const ends = (reason: Error): Store => {
    async function* watch<K extends Kind>(kind: K): AsyncGenerator<Change<K>> {
      yield { type: "relist" };
      if (kind === "claim") throw reason;
      yield { type: "synced" };
    }
    return { watch } as unknown as Store;
  };

  it("tells of a record that cannot be read, to whoever waits for the first pass and to whoever waits for the end", async () => {
    const broken = new BerthError("STATE_CORRUPT", "the stored claim shop/mysql-0 cannot be decoded");
    const following = syncCache(ends(broken), new RecordCache(noopLogger), new AbortController().signal);
    await Promise.all([assert.rejects(following.synced, broken), assert.rejects(following.ended, broken)]);
  });
});

/** Of both families together. */
function held(view: RecordCache, pool: string, namespace: string): number {
  const { IPv4, IPv6 } = view.held(pool, namespace);
  return IPv4 + IPv6;
}
