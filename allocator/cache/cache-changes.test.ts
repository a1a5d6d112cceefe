// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bindingTo, claimRecord, DB_POOL, reservationRecord, storedAs } from "../../test/support/fixtures.ts";
import { type Logger, noopLogger } from "../base/ports.ts";
import type { Kind, Records, Stored } from "../store/store.ts";
import { RecordCache } from "./cache.ts";

function put<K extends Kind>(cache: RecordCache, kind: K, ...records: readonly Records[K][]): Stored<K>[] {
  const all = records.map((record) => storedAs(kind, record));
  for (const stored of all) cache.apply(kind, { type: "put", stored });
  return all;
}

describe("who listens to a cache", () => {
  /** What a handler was told of a kind: the key, and the revisions before and after. */
  function listening<K extends Kind>(cache: RecordCache, kind: K) {
    const reported: string[] = [];
    const forget = cache.onChange(kind, (key, now, before) => {
      reported.push(`${key}: ${before?.uid ?? "-"} to ${now?.uid ?? "-"}`);
    });
    return { reported, forget };
  }

  it("hears of what is new, changed and gone, after it happened", () => {
    const cache = new RecordCache(noopLogger);
    const seen: unknown[] = [];
    cache.onChange("claim", (key) => seen.push(cache.claim(key)?.uid));
    const { reported } = listening(cache, "claim");
    const [first] = put(cache, "claim", claimRecord());
    assert.ok(first);
    cache.apply("claim", { type: "put", stored: { ...first, uid: "other", revision: "x" } });
    cache.apply("claim", { type: "gone", key: first.key });
    assert.deepEqual(reported, [
      "shop/mysql-0: - to uid-shop/mysql-0",
      "shop/mysql-0: uid-shop/mysql-0 to other",
      "shop/mysql-0: other to -",
    ]);
    assert.deepEqual(seen, ["uid-shop/mysql-0", "other", undefined]);
  });

  it("hears of differences alone when everything is listed again", () => {
    const cache = new RecordCache(noopLogger);
    const [stays] = put(cache, "claim", claimRecord(), claimRecord({ name: "mysql-1" }));
    assert.ok(stays);
    const { reported } = listening(cache, "claim");
    cache.apply("claim", { type: "relist" });
    cache.apply("claim", { type: "put", stored: stays });
    assert.deepEqual(reported, []);
    cache.apply("claim", { type: "synced" });
    assert.deepEqual(reported, ["shop/mysql-1: uid-shop/mysql-1 to -"]);
  });

  it("hears nothing of what was never there, of other kinds, or once it has had enough", () => {
    const cache = new RecordCache(noopLogger);
    const { reported, forget } = listening(cache, "claim");
    cache.apply("claim", { type: "gone", key: "shop/none" });
    put(cache, "pool", DB_POOL);
    put(cache, "reservation", reservationRecord("10.20.0.70"));
    forget();
    put(cache, "claim", claimRecord());
    assert.deepEqual(reported, []);
  });

  it("hears of pools and reservations too", () => {
    const cache = new RecordCache(noopLogger);
    const [pools, reservations] = [listening(cache, "pool"), listening(cache, "reservation")];
    put(cache, "pool", DB_POOL);
    put(cache, "reservation", reservationRecord("10.20.0.70"));
    assert.deepEqual(pools.reported, ["db: - to uid-db"]);
    assert.deepEqual(reservations.reported, ["10.20.0.70: - to uid-10.20.0.70"]);
  });

  it("and fails, keeps neither the cache nor others from it", () => {
    const said: unknown[] = [];
    const log: Logger = {
      ...noopLogger,
      error: (message, fields) => void said.push([message, fields?.["key"], String(fields?.["error"])]),
    };
    const cache = new RecordCache(log);
    cache.onChange("claim", () => {
      throw new Error("no queue");
    });
    const { reported } = listening(cache, "claim");
    put(cache, "claim", claimRecord());
    assert.deepEqual(said, [["handler of a change failed", "shop/mysql-0", "Error: no queue"]]);
    assert.equal(reported.length, 1);
    assert.ok(cache.claim("shop/mysql-0"));
  });
});

describe("claims of a cache", () => {
  it("are found by pod, workload and node as they are now", () => {
    const cache = new RecordCache(noopLogger);
    const found = () => [
      cache.claimsOfPod("shop", "mysql-0").length,
      cache.claimsOfWorkload("StatefulSet", "shop", "mysql").length,
      cache.claimsOnNode("node-a").length,
      cache.claimsOnNode("node-b").length,
    ];
    put(cache, "claim", claimRecord({ binding: bindingTo("mysql-0", "node-a") }));
    assert.deepEqual(found(), [1, 1, 1, 0]);
    const [moved] = put(cache, "claim", claimRecord({ binding: bindingTo("mysql-0", "node-b") }));
    assert.deepEqual(found(), [1, 1, 0, 1]);
    assert.deepEqual(cache.claimsOnNode("node-b"), [moved]);
    cache.apply("claim", { type: "relist" });
    cache.apply("claim", { type: "synced" });
    assert.deepEqual(found(), [0, 0, 0, 0]);
  });
});

describe("pools of a cache", () => {
  it("are read again when what they are changes, and not with every report of how full they are", () => {
    const cache = new RecordCache(noopLogger);
    put(cache, "pool", DB_POOL);
    put(cache, "reservation", reservationRecord("10.20.0.70"));
    const pool = cache.pool("db");
    assert.ok(pool);
    const taken = cache.unpickable(pool, "IPv4");
    const [reported] = put(cache, "pool", DB_POOL);
    assert.equal(cache.poolRecord("db"), reported);
    assert.equal(cache.pool("db"), pool);
    assert.equal(cache.unpickable(pool, "IPv4"), taken);
    put(cache, "pool", { ...DB_POOL, deleting: true });
    assert.equal(cache.pool("db")?.deleting, true);
  });
});
