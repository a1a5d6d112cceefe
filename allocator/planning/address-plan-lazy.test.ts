// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addrs,
  askFor,
  DB_POOL,
  poolRecord,
  reservationRecord,
  viewOf,
} from "../../test/support/fixtures.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { runsOf } from "../../test/support/runs.ts";
import { isRefusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, fromNumber } from "../ip/address.ts";
import type { IntervalSet } from "../ip/interval-set.ts";
import { planAddresses } from "./address-plan.ts";
import type { AddressConstraints, Candidate } from "./plan.ts";

/** A view that counts how often a planner asks for the next free number. */
function counted(view: RecordReader): { view: RecordReader; steps: () => number } {
  let steps = 0;
  const counting: RecordReader = {
    pool: (name) => view.pool(name),
    poolOf: (address) => view.poolOf(address),
    pools: () => view.pools(),
    reservation: (address) => view.reservation(address),
    claim: (key) => view.claim(key),
    claims: () => view.claims(),
    claimsOfPod: (namespace, name) => view.claimsOfPod(namespace, name),
    reservations: () => view.reservations(),
    held: (pool, namespace) => view.held(pool, namespace),
    cooling: (pool, namespace) => view.cooling(pool, namespace),
    taken: (pool) => view.taken(pool),
    unpickable: (pool, family) => {
      const runs = view.unpickable(pool, family);
      const nextFree = (from: bigint, to: bigint) => {
        steps++;
        return runs.nextFree(from, to);
      };
      return { nextFree } as unknown as IntervalSet;
    },
  };
  return { view: counting, steps: () => steps };
}

function firstOf(view: RecordReader, ask: Partial<AddressConstraints>): Candidate | undefined {
  const plan = planAddresses(view, askFor(ask));
  assert.ok(!isRefusal(plan));
  for (const candidate of plan.familyPlans[0]?.candidates ?? []) return candidate;
  return undefined;
}

function drained(view: RecordReader, ask: Partial<AddressConstraints>): unknown {
  const plan = planAddresses(view, askFor(ask));
  if (isRefusal(plan)) return plan;
  return {
    ...plan,
    familyPlans: plan.familyPlans.map((familyPlan) => ({
      ...familyPlan,
      candidates: [...familyPlan.candidates],
      exhausted: familyPlan.exhausted(),
    })),
  };
}

describe("planning is lazy", () => {
  it("on a /64", () => {
    const { view, steps } = counted(viewOf({ pools: [poolRecord("six", "fd00::/64")] }));
    assert.equal(firstOf(view, {})?.pool, "six");
    assert.equal(steps(), 1);
  });

  it("on a /16 with one address in a thousand free", () => {
    const free = (n: number) => n % 1000 === 7;
    const reservations = Array.from({ length: 65_534 }, (_, i) => i + 1)
      .filter((n) => !free(n))
      .map((n) => reservationRecord(fromNumber(0x0a000000n + BigInt(n), "IPv4"), { pool: "p" }));
    const limits = { perNamespace: 65_534 };
    const full = viewOf({ pools: [poolRecord("p", "10.0.0.0/16", { limits })], reservations });
    for (let n = 0; n < 100; n++) {
      const { view, steps } = counted(full);
      const address = firstOf(view, { name: `mysql-${n}` })?.address;
      assert.ok(address !== undefined && full.reservation(address) === undefined);
      assert.ok(steps() <= 2, `${steps()} steps`);
    }
  });

  it("before anybody walks", () => {
    const { view, steps } = counted(viewOf({ pools: [DB_POOL] }));
    planAddresses(view, askFor());
    assert.equal(steps(), 0);
  });
});

describe("planning is pure", () => {
  const choices: readonly Address[] = addrs(
    "10.20.0.65",
    "10.20.0.70",
    "10.20.0.71",
    "10.20.0.100",
    "10.9.9.9",
    "10.30.0.1",
  );
  const pools = [
    poolRecord("db", "10.20.0.64/26", { reserved: ["10.20.0.70"] }),
    poolRecord("web", "10.30.0.0/29", { limits: { perNamespace: 2 }, priority: 1 }),
  ];
  const ask = fc.record(
    {
      addresses: fc.constantFrom(...choices).map((address) => [address]),
      pools: fc.subarray(["db", "web", "none", "10.30.0.0/29"], { minLength: 1 }),
      families: fc.constantFrom<("IPv4" | "IPv6")[]>(["IPv4"], ["IPv6"], ["IPv4", "IPv6"]),
      ownAddresses: fc.subarray([...choices]),
    },
    { requiredKeys: [] },
  );

  it("the same view gives the same plan, and every candidate is free and of the asked family", () => {
    const random = new SeededRandom(7);
    const taken = choices.filter(() => random.fraction() < 0.5);
    const reservations = taken.map((address) => reservationRecord(address, { pool: "db" }));
    const view = viewOf({ pools, reservations });
    fc.assert(
      fc.property(ask, (given) => {
        const first = drained(view, given);
        assert.deepEqual(drained(view, given), first);
        const plan = planAddresses(view, askFor(given));
        if (isRefusal(plan)) return;
        for (const familyPlan of plan.familyPlans) {
          for (const { address, pool } of familyPlan.candidates) {
            assert.equal(view.poolOf(address)?.name, pool);
            if (!familyPlan.exact) assert.equal(view.reservation(address), undefined);
          }
        }
      }),
      { numRuns: runsOf(300) },
    );
  });
});
