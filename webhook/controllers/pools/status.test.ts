// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { countPoolUsage, exhaustedOf, ranOutOf, UNUSED } from "../../../allocator/cache/pool-usage.ts";
import { findOverlap } from "../../../allocator/pool/overlap.ts";
import { parsePool } from "../../../allocator/pool/pool.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  parsed,
  poolRecord,
  reservationRecord,
  reservationsOf,
  viewOf,
} from "../../../test/support/fixtures.ts";
import { type PoolState, reportOn } from "./status.ts";

const NOTHING = { reserved: 0, cooling: 0, bound: 0 };

function item(status: unknown = {}) {
  return { metadata: { name: "db", uid: "u", resourceVersion: "1", generation: 4 }, status };
}

function state(over: Partial<PoolState> = {}): PoolState {
  return { pool: parsed(DB_POOL), deleting: false, use: UNUSED, exhausted: [], ...over };
}

function conditionsOf(given: PoolState): readonly string[] {
  const conditions = reportOn(item(), given, NOW)?.conditions ?? [];
  return conditions.map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
}

describe("the usage", () => {
  it("counts what is reserved, cooling and bound, and names some holders", async () => {
    const bound = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
    const held = claimRecord({
      name: "mysql-1",
      addresses: addrs("10.20.0.71"),
      binding: bindingTo("mysql-1", ""),
    });
    const liar = claimRecord({
      name: "mysql-2",
      nonce: "n2",
      addresses: addrs("10.20.0.71"),
      binding: bindingTo("mysql-2", "node-a"),
    });
    const cache = viewOf({
      pools: [DB_POOL],
      claims: [bound, held, liar],
      reservations: [
        ...[...reservationsOf(bound), ...reservationsOf(held)],
        reservationRecord("10.20.0.80", { releasedAt: NOW }),
        reservationRecord("10.99.0.1", { pool: "gone" }),
      ],
    });
    const usage = await countPoolUsage(cache, async () => {});
    assert.deepEqual(Object.fromEntries(usage), {
      db: {
        byFamily: { IPv4: { reserved: 2, cooling: 1, bound: 1 }, IPv6: NOTHING },
        reserved: 2,
        some: ["10.20.0.70 (shop/mysql-0)", "10.20.0.71 (shop/mysql-1)"],
      },
      gone: {
        byFamily: { IPv4: { ...NOTHING, reserved: 1 }, IPv6: NOTHING },
        reserved: 1,
        some: ["10.99.0.1 (shop/mysql-0)"],
      },
    });
  });

  it("counts what nodes have in blocks as used, and not as reserved", async () => {
    const small = poolRecord("small", "10.31.0.0/29", { blockSize: { ipv4: 31 } });
    const block = { cidr: "10.31.0.2/31", pool: "small", node: "n", nodeUID: "u", holes: ["10.31.0.3/32"] };
    const usage = await countPoolUsage(viewOf({ pools: [small], blocks: [block] }), async () => {});
    const use = usage.get("small") ?? UNUSED;
    assert.deepEqual([use.reserved, use.byFamily.IPv4], [0, { ...NOTHING, inBlocks: 1 }]);
    const { ipv4 } = reportOn(item(), state({ pool: parsed(small), use }), NOW) ?? {};
    assert.deepEqual(ipv4, { capacity: "6", ...NOTHING, free: "5" });
  });

  it("lets others have their turn when there is much to count", async () => {
    const reservations = Array.from({ length: 2_500 }, (_, n) =>
      reservationRecord(`10.20.${10 + Math.floor(n / 250)}.${n % 250}`),
    );
    let turns = 0;
    const usage = await countPoolUsage(viewOf({ reservations }), async () => void turns++);
    assert.equal(turns, 5);
    assert.equal(usage.get("db")?.reserved, 2_500);
  });
});

describe("the status of a pool", () => {
  it("has numbers of any size as text, and is not written again", () => {
    const ipv4 = { reserved: 2, cooling: 1, bound: 1 };
    const ipv6 = { reserved: 1, cooling: 0, bound: 1 };
    const use = { byFamily: { IPv4: ipv4, IPv6: ipv6 }, reserved: 3, some: [] };
    const report = reportOn(item(), state({ use }), NOW);
    const { conditions, ...numbers } = report ?? { conditions: [] };
    // 150 of IPv4 less gateway and ten excluded, and a /64 less the address of the network
    assert.deepEqual(numbers, {
      reserved: 3,
      bound: 2,
      ipv4: { capacity: "139", ...ipv4, free: "136" },
      ipv6: { capacity: String(2n ** 64n - 1n), ...ipv6, free: String(2n ** 64n - 2n) },
      // a sum of both families says nothing
      capacity: null,
      free: null,
    });
    assert.deepEqual(
      conditions.map(({ observedGeneration }) => observedGeneration),
      [4, 4, 4],
    );
    assert.equal(reportOn(item(report), state({ use }), NOW + 60_000), undefined);
    assert.notEqual(reportOn(item(report), state({ use: { ...use, reserved: 4 } }), NOW), undefined);
    assert.notEqual(reportOn(item({ ...report, free: "7" }), state({ use }), NOW), undefined);
  });

  it("has the number of its blocks, where it is cut into some", () => {
    const report = reportOn(item(), state({ blocks: 3 }), NOW);
    assert.equal(report?.blocks, 3);
    assert.equal(reportOn(item(report), state({ blocks: 3 }), NOW), undefined);
    assert.equal(reportOn(item(report), state({ blocks: 0 }), NOW)?.blocks, 0);
    assert.equal("blocks" in (reportOn(item(), state(), NOW) ?? {}), false);
  });

  it("has how many addresses are in its blocks, and how many of those are used", () => {
    const full = { ...NOTHING, inBlocks: 11 };
    const use = { ...UNUSED, byFamily: { IPv4: full, IPv6: NOTHING } };
    const cut = state({ blocks: 11, use, used: 7, exhausted: ["IPv4"] });
    const report = reportOn(item(), cut, NOW);
    assert.deepEqual([report?.inBlocks, report?.used], [11, 7]);
    assert.equal(reportOn(item(report), cut, NOW), undefined);
    assert.notEqual(reportOn(item(report), { ...cut, used: 8 }, NOW), undefined);
    assert.equal("inBlocks" in (reportOn(item(), state(), NOW) ?? {}), false);
    assert.match(
      conditionsOf(cut).find((one) => one.startsWith("Exhausted")) ?? "",
      /is taken, 11 by blocks of nodes, which give what they do not use to pods that ask for nothing; add a range or end pods$/,
    );
  });

  it("is open", () => {
    assert.deepEqual(conditionsOf(state()), [
      "Ready=True Open: takes reservations",
      "Exhausted=False AddressesFree: addresses are free",
      "Invalid=False Valid: its spec can be used",
    ]);
  });

  it("says what keeps strangers from sending reviews, where that is known", () => {
    const said = (reviewersBy: PoolState["reviewersBy"]) =>
      conditionsOf(state({ reviewersBy }))
        .slice(3)
        .map((condition) => condition.split(":")[0]);
    assert.deepEqual(said("nothing"), ["ReviewsOpen=True AnyClient"]);
    assert.deepEqual(said("NetworkPolicy"), ["ReviewsOpen=Unknown NetworkPolicy"]);
    assert.deepEqual(said("ClosedElsewhere"), ["ReviewsOpen=Unknown ClosedElsewhere"]);
    assert.deepEqual(said("ClientCertificate"), ["ReviewsOpen=False ClientCertificate"]);
  });

  it("says of both pools that they have addresses in common", () => {
    const [one, two] = [parsed(poolRecord("one", "10.40.0.0/24")), parsed(poolRecord("two", "10.40.0.0/25"))];
    const said = (pool: typeof one) =>
      conditionsOf(state({ pool, collides: findOverlap([one, two], pool) })).slice(0, 1);
    const advice =
      "both contain 10.40.0.1-10.40.0.126; change from, to or cidr of one of them, or set spec.disabled: true on one, which may always be changed, and delete it once nothing of it is in use";
    assert.deepEqual(said(one), [`Ready=False PoolOverlaps: pools one and two ${advice}`]);
    assert.deepEqual(said(two), [`Ready=False PoolOverlaps: pools two and one ${advice}`]);
  });

  it("says which family is used up, of which addresses by explicit request may be left", () => {
    const pool = poolRecord("db", ["10.20.0.0/30", "fd00:20::/64"], { reserved: ["10.20.0.1"] });
    const taken = viewOf({ pools: [pool], reservations: [reservationRecord("10.20.0.2")] });
    assert.deepEqual(exhaustedOf(taken, parsed(pool)), ["IPv4"]);
    assert.deepEqual(exhaustedOf(viewOf({ pools: [pool] }), parsed(pool)), []);
    assert.deepEqual(conditionsOf(state({ exhausted: ["IPv4"] })).slice(1, 2), [
      "Exhausted=True PoolExhausted: every IPv4 address that may be had without naming it is taken; add a range or release claims",
    ]);
  });

  it("does not call a pool used up that is reserved whole", () => {
    const first = "fe80::ff:fe00:0";
    const last = "fe80::ff:fe00:ff";
    const spec = { ranges: [{ cidr: "fe80::/64", from: first, to: last }], reserved: [`${first}-${last}`] };
    const pool = { name: "macs", spec };
    const reservations = [reservationRecord("fe80::ff:fe00:51", { pool: "macs" })];
    assert.deepEqual(ranOutOf(viewOf({ pools: [pool], reservations }), parsed(pool)), []);
    const small = poolRecord("db", "10.20.0.0/30", { reserved: ["10.20.0.1"] });
    const taken = viewOf({ pools: [small], reservations: [reservationRecord("10.20.0.2")] });
    assert.deepEqual(ranOutOf(taken, parsed(small)), ["IPv4"]);
  });

  it("says what keeps a deleted pool", () => {
    const some = ["10.20.0.70 (shop/mysql-0)"];
    const use = { ...UNUSED, reserved: 5, some };
    assert.deepEqual(conditionsOf(state({ deleting: true, use })).slice(0, 1), [
      "Ready=False Deleting: it was deleted and goes when what it still holds is released: 10.20.0.70 (shop/mysql-0) and 4 more",
    ]);
    assert.deepEqual(conditionsOf(state({ deleting: true })).slice(0, 1), [
      "Ready=False Deleting: it was deleted and is about to go",
    ]);
  });

  it("says that a pool is disabled or cannot be used, and then has no capacity", () => {
    const closed = parsed({ ...DB_POOL, spec: { ...DB_POOL.spec, disabled: true } });
    assert.deepEqual(conditionsOf(state({ pool: closed })).slice(0, 1), [
      "Ready=False PoolDisabled: takes no new reservations: spec.disabled is true",
    ]);
    const invalid = state({ pool: parsePool({ name: "db", spec: { ranges: [] } }) });
    const [ready, exhausted, wrong] = conditionsOf(invalid);
    assert.match(ready ?? "", /^Ready=False PoolInvalid: spec\.ranges is empty/);
    assert.match(exhausted ?? "", /^Exhausted=Unknown PoolInvalid/);
    assert.match(wrong ?? "", /^Invalid=True PoolInvalid: spec\.ranges is empty/);
    const { ipv4, ipv6 } = reportOn(item(), invalid, NOW) ?? {};
    assert.deepEqual({ ipv4, ipv6 }, { ipv4: null, ipv6: null });
  });
});
