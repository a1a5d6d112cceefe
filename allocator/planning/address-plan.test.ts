// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  askFor,
  claimRecord,
  DB_POOL,
  poolRecord,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import type { Reservation } from "../model/reservation.ts";
import type { PoolRecord } from "../pool/pool.ts";
import { planAddresses } from "./address-plan.ts";
import type { AddressConstraints } from "./plan.ts";

/** The plan in words: what is kept, then the first three candidates of each family; "!" before what is asked for by name. */
function planned(view: RecordReader, ask: Partial<AddressConstraints>): string {
  const plan = planAddresses(view, askFor(ask));
  if (isRefusal(plan)) return `${plan.code}: ${plan.message}`;
  const familyPlans = plan.familyPlans.map(({ exact, candidates }) => {
    const first: string[] = [];
    for (const { address, pool } of candidates) {
      if (first.push(`${address}@${pool}`) === 3) break;
    }
    return `${exact ? "!" : ""}${first.join(" ")}`;
  });
  return [`keep ${plan.keep.join(" ")}`.trim(), ...familyPlans].join(", ");
}

function others(pool: string, ...addresses: readonly string[]): Reservation[] {
  return reservationsOf(claimRecord({ name: "other", nonce: "n2", addresses: addrs(...addresses) }), pool);
}

const view = viewOf({
  pools: [DB_POOL, poolRecord("web", "10.30.0.0/29"), poolRecord("six", "fd00:30::/126")],
});

describe("addresses asked for by name", () => {
  const cases: readonly (readonly [string, Partial<AddressConstraints>, string])[] = [
    ["an open one", { addresses: addrs("10.20.0.70") }, "keep, !10.20.0.70@db"],
    [
      "one of each family",
      { addresses: addrs("10.20.0.70", "fd00:20::7") },
      "keep, !10.20.0.70@db, !fd00:20::7@db",
    ],
    [
      "of two pools",
      { addresses: addrs("fd00:30::1", "10.30.0.1") },
      "keep, !fd00:30::1@six, !10.30.0.1@web",
    ],
    ["a reserved one", { addresses: addrs("10.20.0.50") }, "keep, !10.20.0.50@db"],
    ["with its pool", { addresses: addrs("10.20.0.70"), pools: ["web", "db"] }, "keep, !10.20.0.70@db"],
    [
      "with a CIDR of its pool",
      { addresses: addrs("10.20.0.70"), pools: ["10.20.0.0/24"] },
      "keep, !10.20.0.70@db",
    ],
    ["with its family", { addresses: addrs("10.20.0.70"), families: ["IPv4"] }, "keep, !10.20.0.70@db"],
    [
      "with its families, in the other order",
      { addresses: addrs("10.20.0.70", "fd00:20::7"), families: ["IPv6", "IPv4"] },
      "keep, !10.20.0.70@db, !fd00:20::7@db",
    ],
    [
      "held already",
      { addresses: addrs("10.20.0.70"), ownAddresses: addrs("10.20.0.70") },
      "keep 10.20.0.70",
    ],
    [
      "one of two held already",
      { addresses: addrs("10.20.0.70", "fd00:20::7"), ownAddresses: addrs("fd00:20::7") },
      "keep fd00:20::7, !10.20.0.70@db",
    ],
    [
      "instead of what is held",
      { addresses: addrs("10.20.0.71"), ownAddresses: addrs("10.20.0.70") },
      "keep, !10.20.0.71@db",
    ],
    [
      "in no pool",
      { addresses: addrs("10.20.0.49") },
      'ADDRESS_OUTSIDE: address 10.20.0.49 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199, "web" 10.30.0.1-10.30.0.6',
    ],
    [
      "in no pool, IPv6",
      { addresses: addrs("fd00::1") },
      'ADDRESS_OUTSIDE: address fd00::1 is in no pool; name one of a pool: "db" fd00:20::1-fd00:20::ffff:ffff:ffff:ffff, "six" fd00:30::1-fd00:30::3',
    ],
    [
      "of another pool than is named",
      { addresses: addrs("10.20.0.70"), pools: ["web", "six"] },
      'ADDRESS_OUTSIDE: address 10.20.0.70 belongs to pool "db", and the request names "web", "six"; name one or the other',
    ],
    [
      "of the named pool, but not of the named CIDR",
      { addresses: addrs("10.20.0.70"), pools: ["fd00:20::/64"] },
      'ADDRESS_OUTSIDE: address 10.20.0.70 belongs to pool "db", and the request names "fd00:20::/64"; name one or the other',
    ],
    [
      "the gateway",
      { addresses: addrs("10.20.0.100") },
      'ADDRESS_EXCLUDED: address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
    ],
    [
      "excluded",
      { addresses: addrs("10.20.0.69") },
      'ADDRESS_EXCLUDED: address 10.20.0.69 is excluded from pool "db"; free nearby: 10.20.0.70, 10.20.0.71, 10.20.0.72',
    ],
    [
      "without an address of a family that is asked for",
      { addresses: addrs("10.20.0.70"), families: ["IPv4", "IPv6"] },
      "REQUEST_INVALID: the request names 10.20.0.70 and asks for IPv4 and IPv6; name an address of each family, or leave the families out",
    ],
    [
      "of a family that is not asked for",
      { addresses: addrs("10.20.0.70", "fd00:20::7"), families: ["IPv6"] },
      "REQUEST_INVALID: the request names 10.20.0.70 and fd00:20::7 and asks for IPv6; name an address of each family, or leave the families out",
    ],
  ];
  for (const [title, ask, outcome] of cases) {
    it(title, () => assert.equal(planned(view, ask), outcome));
  }

  it("are proposed though the view has them as taken: the store decides, and the words name the holder", () => {
    const busy = viewOf({ pools: [DB_POOL], reservations: others("db", "10.20.0.70") });
    assert.equal(planned(busy, { addresses: addrs("10.20.0.70") }), "keep, !10.20.0.70@db");
    const plan = planAddresses(busy, askFor({ addresses: addrs("10.20.0.70") }));
    assert.ok(!isRefusal(plan));
    assert.equal(
      plan.familyPlans[0]?.exhausted().message,
      'address 10.20.0.70 in pool "db" is held by shop/other; free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or release it with: berthctl release shop/other',
    );
  });
});

describe("any address", () => {
  const small = viewOf({
    pools: [poolRecord("a", ["10.0.0.0/30", "fd00::/126"]), poolRecord("b", ["10.0.1.0/30", "fd01::/126"])],
  });
  const cases: readonly (readonly [string, Partial<AddressConstraints>, string])[] = [
    [
      "one of each family of the first pool",
      {},
      "keep, 10.0.0.1@a 10.0.0.2@a 10.0.1.1@b, fd00::2@a fd00::3@a fd00::1@a",
    ],
    ["of the named pool", { pools: ["b"] }, "keep, 10.0.1.1@b 10.0.1.2@b, fd01::2@b fd01::3@b fd01::1@b"],
    ["of the families", { pools: ["b"], families: ["IPv6"] }, "keep, fd01::2@b fd01::3@b fd01::1@b"],
    ["of a family said twice", { pools: ["b"], families: ["IPv4", "IPv4"] }, "keep, 10.0.1.1@b 10.0.1.2@b"],
    ["of the named range alone", { pools: ["10.0.1.0/30"] }, "keep, 10.0.1.1@b 10.0.1.2@b"],
    [
      "of ranges of two pools, in the order of naming",
      { pools: ["10.0.1.0/30", "fd00::/126"] },
      "keep, 10.0.1.1@b 10.0.1.2@b, fd00::2@a fd00::3@a fd00::1@a",
    ],
    [
      "of the pools in the order of naming",
      { pools: ["b", "a"], families: ["IPv4"] },
      "keep, 10.0.1.1@b 10.0.1.2@b 10.0.0.1@a",
    ],
    ["what is held", { ownAddresses: addrs("10.0.0.1", "fd00::1") }, "keep 10.0.0.1 fd00::1"],
    [
      "what is held, and the family that is missing",
      { ownAddresses: addrs("10.0.1.1") },
      "keep 10.0.1.1, fd00::2@a fd00::3@a fd00::1@a",
    ],
    [
      "not what is held elsewhere than in the named pool",
      { pools: ["b"], ownAddresses: addrs("10.0.0.1", "fd01::1") },
      "keep fd01::1, 10.0.1.1@b 10.0.1.2@b",
    ],
    [
      "not what is held outside the named range",
      { pools: ["10.0.0.0/30"], ownAddresses: addrs("fd00::1") },
      "keep, 10.0.0.1@a 10.0.0.2@a",
    ],
    [
      "not what is held of a family that is not asked for",
      { families: ["IPv4"], ownAddresses: addrs("10.0.0.1", "fd00::1") },
      "keep 10.0.0.1",
    ],
    [
      "of a pool that is not there",
      { pools: ["a", "c"] },
      'POOL_UNKNOWN: there is no pool "c"; name one of "a", "b"',
    ],
    [
      "of a CIDR that no pool has",
      { pools: ["10.0.0.0/24"] },
      'POOL_UNKNOWN: there is no pool "10.0.0.0/24"; name one of "a", "b"',
    ],
  ];
  for (const [title, ask, outcome] of cases) {
    it(title, () => assert.equal(planned(small, ask), outcome));
  }

  it("is never one that is taken, cooling, reserved, excluded or a gateway", () => {
    const pool: PoolRecord = {
      name: "p",
      spec: {
        ranges: [{ cidr: "10.0.0.0/29", gateway: "10.0.0.1", exclude: ["10.0.0.2"] }],
        reserved: ["10.0.0.3"],
      },
    };
    const [taken, cooling] = others("p", "10.0.0.4", "10.0.0.5");
    assert.ok(taken && cooling);
    const reservations = [taken, { ...cooling, releasedAt: 1 }];
    assert.equal(planned(viewOf({ pools: [pool], reservations }), {}), "keep, 10.0.0.6@p");
  });

  it("starts at the same address for the same identity, and at another for the next", () => {
    const wide = viewOf({ pools: [poolRecord("p", "10.0.0.0/16")] });
    const first = (name: string): string => planned(wide, { name });
    assert.equal(first("mysql-0"), first("mysql-0"));
    assert.equal(new Set(Array.from({ length: 50 }, (_, n) => first(`mysql-${n}`))).size, 50);
  });

  it("is refused when there is none left, naming every pool that was looked at", () => {
    const full: Address[] = addrs("10.0.0.1", "10.0.0.2");
    const claim = claimRecord({ name: "other", addresses: full });
    const busy = viewOf({
      pools: [poolRecord("a", "10.0.0.0/30"), poolRecord("b", "10.0.1.0/30")],
      reservations: [...reservationsOf(claim, "a"), ...others("b", "10.0.1.1", "10.0.1.2")],
    });
    const plan = planAddresses(busy, askFor());
    assert.ok(!isRefusal(plan));
    assert.deepEqual([...(plan.familyPlans[0]?.candidates ?? [])], []);
    assert.equal(
      plan.familyPlans[0]?.exhausted().message,
      'no free IPv4 address in pool "a", "b": 4 are held or cooling; add a range, or release claims that are not needed',
    );
  });
});
