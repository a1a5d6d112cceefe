// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bindingTo, claimRecord, DB_POOL, reservationRecord, storedAs } from "../test/support/fixtures.ts";
import { Mirror } from "./mirror.ts";
import { type Logger, silent } from "./ports.ts";
import type { Kind, Records, Stored } from "./store/store.ts";

function put<K extends Kind>(mirror: Mirror, kind: K, ...records: readonly Records[K][]): Stored<K>[] {
  const all = records.map((record) => storedAs(kind, record));
  for (const stored of all) mirror.apply(kind, { type: "put", stored });
  return all;
}

describe("who listens to a mirror", () => {
  /** What a handler was told of a kind: the key, and the revisions before and after. */
  function listening<K extends Kind>(mirror: Mirror, kind: K) {
    const told: string[] = [];
    const forget = mirror.onChange(kind, (key, now, before) => {
      told.push(`${key}: ${before?.uid ?? "-"} to ${now?.uid ?? "-"}`);
    });
    return { told, forget };
  }

  it("hears of what is new, changed and gone, after it happened", () => {
    const mirror = new Mirror(silent);
    const seen: unknown[] = [];
    mirror.onChange("claim", (key) => seen.push(mirror.claim(key)?.uid));
    const { told } = listening(mirror, "claim");
    const [first] = put(mirror, "claim", claimRecord());
    assert.ok(first);
    mirror.apply("claim", { type: "put", stored: { ...first, uid: "other", revision: "x" } });
    mirror.apply("claim", { type: "gone", key: first.key });
    assert.deepEqual(told, [
      "shop/mysql-0: - to uid-shop/mysql-0",
      "shop/mysql-0: uid-shop/mysql-0 to other",
      "shop/mysql-0: other to -",
    ]);
    assert.deepEqual(seen, ["uid-shop/mysql-0", "other", undefined]);
  });

  it("hears of differences alone when everything is listed again", () => {
    const mirror = new Mirror(silent);
    const [stays] = put(mirror, "claim", claimRecord(), claimRecord({ name: "mysql-1" }));
    assert.ok(stays);
    const { told } = listening(mirror, "claim");
    mirror.apply("claim", { type: "relist" });
    mirror.apply("claim", { type: "put", stored: stays });
    assert.deepEqual(told, []);
    mirror.apply("claim", { type: "synced" });
    assert.deepEqual(told, ["shop/mysql-1: uid-shop/mysql-1 to -"]);
  });

  it("hears nothing of what was never there, of other kinds, or once it has had enough", () => {
    const mirror = new Mirror(silent);
    const { told, forget } = listening(mirror, "claim");
    mirror.apply("claim", { type: "gone", key: "shop/none" });
    put(mirror, "pool", DB_POOL);
    put(mirror, "reservation", reservationRecord("10.20.0.70"));
    forget();
    put(mirror, "claim", claimRecord());
    assert.deepEqual(told, []);
  });

  it("hears of pools and reservations too", () => {
    const mirror = new Mirror(silent);
    const [pools, reservations] = [listening(mirror, "pool"), listening(mirror, "reservation")];
    put(mirror, "pool", DB_POOL);
    put(mirror, "reservation", reservationRecord("10.20.0.70"));
    assert.deepEqual(pools.told, ["db: - to uid-db"]);
    assert.deepEqual(reservations.told, ["10.20.0.70: - to uid-10.20.0.70"]);
  });

  it("and fails, keeps neither the mirror nor others from it", () => {
    const said: unknown[] = [];
    const log: Logger = {
      ...silent,
      error: (message, fields) => void said.push([message, fields?.["key"], String(fields?.["error"])]),
    };
    const mirror = new Mirror(log);
    mirror.onChange("claim", () => {
      throw new Error("no queue");
    });
    const { told } = listening(mirror, "claim");
    put(mirror, "claim", claimRecord());
    assert.deepEqual(said, [["handler of a change failed", "shop/mysql-0", "Error: no queue"]]);
    assert.equal(told.length, 1);
    assert.ok(mirror.claim("shop/mysql-0"));
  });
});

describe("claims of a mirror", () => {
  it("are found by pod, workload and node as they are now", () => {
    const mirror = new Mirror(silent);
    const found = () => [
      mirror.claimsOfPod("shop", "mysql-0").length,
      mirror.claimsOfWorkload("StatefulSet", "shop", "mysql").length,
      mirror.claimsOnNode("node-a").length,
      mirror.claimsOnNode("node-b").length,
    ];
    put(mirror, "claim", claimRecord({ binding: bindingTo("mysql-0", "node-a") }));
    assert.deepEqual(found(), [1, 1, 1, 0]);
    const [moved] = put(mirror, "claim", claimRecord({ binding: bindingTo("mysql-0", "node-b") }));
    assert.deepEqual(found(), [1, 1, 0, 1]);
    assert.deepEqual(mirror.claimsOnNode("node-b"), [moved]);
    mirror.apply("claim", { type: "relist" });
    mirror.apply("claim", { type: "synced" });
    assert.deepEqual(found(), [0, 0, 0, 0]);
  });
});

describe("pools of a mirror", () => {
  it("are read again when what they are changes, and not with every report of how full they are", () => {
    const mirror = new Mirror(silent);
    put(mirror, "pool", DB_POOL);
    put(mirror, "reservation", reservationRecord("10.20.0.70"));
    const pool = mirror.pool("db");
    assert.ok(pool);
    const taken = mirror.unpickable(pool, "IPv4");
    const [reported] = put(mirror, "pool", DB_POOL);
    assert.equal(mirror.poolRecord("db"), reported);
    assert.equal(mirror.pool("db"), pool);
    assert.equal(mirror.unpickable(pool, "IPv4"), taken);
    put(mirror, "pool", { ...DB_POOL, deleting: true });
    assert.equal(mirror.pool("db")?.deleting, true);
  });
});
