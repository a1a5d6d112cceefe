// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { podAllocation } from "../../test/support/allocation-requests.ts";
import { assertSound } from "../../test/support/assert-audit.ts";
import { ManualClock } from "../../test/support/clock.ts";
import { FailingStore } from "../../test/support/failing-store.ts";
import { granted, poolRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { KeyedMutex } from "../base/keyed-mutex.ts";
import type { Context } from "../cache/context.ts";
import { type Half, Spread } from "../cache/spread.ts";
import type { Address } from "../ip/address.ts";
import type { Candidate } from "../planning/plan.ts";
import type { CreateResult, Kind, Records } from "../store/store.ts";
import { reserve } from "./reserve.ts";
import { spreadOut } from "./spread-candidates.ts";

const CLAIM = "shop/web-0";
const OTHER = "shop/web-1";

function candidate(last: number, pool = "db", first?: Candidate["first"]): Candidate {
  return { address: `10.20.0.${last}` as Address, pool, ...(first && { first }) };
}

function order(candidates: readonly Candidate[], spread: Spread | undefined): readonly string[] {
  return [...spreadOut(candidates, { spread, claim: CLAIM })].map(({ address }) => address.slice(8));
}

function spreadFor(half: Half, clock = new ManualClock()): Spread {
  return new Spread(clock, () => half);
}

describe("spreadOut", () => {
  const four = [1, 2, 3, 4].map((last) => candidate(last));

  it("leaves the plan's order where nobody else is at work", () => {
    assert.deepEqual(order(four, undefined), ["1", "2", "3", "4"]);
    assert.deepEqual(order(four, spreadFor("even")), ["1", "2", "3", "4"]);
  });

  it("goes to its replica's half first while others are at work, and has each candidate once", () => {
    for (const [half, expected] of [
      ["even", ["2", "4", "1", "3"]],
      ["odd", ["1", "3", "2", "4"]],
    ] as const) {
      const spread = spreadFor(half);
      spread.tries("10.20.0.99" as Address, OTHER);
      assert.deepEqual(order(four, spread), expected);
    }
  });

  it("comes last to what another claim tries, until the records show it", () => {
    const clock = new ManualClock();
    const spread = spreadFor("even", clock);
    spread.tries("10.20.0.2" as Address, OTHER);
    assert.deepEqual(order(four, spread), ["4", "1", "2", "3"]);
    clock.advance(2_000);
    assert.deepEqual(order(four, spread), ["1", "2", "3", "4"]);
  });

  it("tries again what the same claim has tried", () => {
    const spread = spreadFor("even");
    spread.tries("10.20.0.2" as Address, CLAIM);
    assert.deepEqual(order(four, spread), ["2", "4", "1", "3"]);
  });

  it("asks no half where the identity's name leads to, and nobody for what the request names", () => {
    const spread = spreadFor("even");
    spread.tries("10.20.0.5" as Address, OTHER);
    assert.deepEqual(order([candidate(3, "db", "own"), candidate(4)], spread), ["3", "4"]);
    assert.deepEqual(order([candidate(5, "db", "own"), candidate(4)], spread), ["4", "5"]);
    assert.deepEqual(order([candidate(5, "db", "named"), candidate(4)], spread), ["5", "4"]);
  });

  it("takes all of a pool before the next one", () => {
    const spread = spreadFor("even");
    spread.tries("10.20.0.99" as Address, OTHER);
    assert.deepEqual(order([candidate(1), candidate(3), candidate(6, "spare")], spread), ["1", "3", "6"]);
  });

  it("passes over a few, and not over a whole pool", () => {
    const spread = spreadFor("even");
    spread.tries("10.20.0.98" as Address, OTHER);
    const odd = Array.from({ length: 40 }, (_, n) => candidate(2 * n + 1));
    const [first] = spreadOut(odd, { spread, claim: CLAIM });
    assert.equal(first?.address, "10.20.0.33");
  });
});

/** Counts reservations that were asked for in vain. */
class Refusing extends FailingStore {
  refused = 0;

  override async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    const result = await super.create(kind, record);
    if (kind === "reservation" && result.kind !== "created") this.refused++;
    return result;
  }
}

describe("two replicas that fill a pool of 254 addresses, 16 at once", () => {
  const PODS = 254;
  const AT_ONCE = 16;

  /** How many reservations were refused; everybody has an address. */
  async function refusals(spreadOf: (half: Half, context: Context) => Pick<Context, "spread">) {
    await using world = await openWorld({
      pools: [poolRecord("db", "10.20.0.0/24", { cooldown: "1s", limits: { perNamespace: 254 } })],
    });
    const store = new Refusing(world.realStore, 0);
    const replicas = (["even", "odd"] as const).map((half) => {
      const context = { ...world.context, store, serial: new KeyedMutex() };
      return { ...context, ...spreadOf(half, context) };
    });
    for (let n = 0; n < PODS; n += AT_ONCE) {
      const names = Array.from({ length: Math.min(AT_ONCE, PODS - n) }, (_, i) => `web-${n + i}`);
      const work = names.map(async (name, i) => {
        const context = replicas[i % 2] ?? world.context;
        granted(await reserve(context, podAllocation(world, name, { pools: ["db"] }), "pod"));
      });
      await Promise.all(work);
      await world.settle();
    }
    assert.equal((await world.all("claim")).length, PODS);
    await assertSound(world);
    return store.refused;
  }

  it("seldom ask for the same one", async () => {
    const apart = await refusals((half, { clock }) => ({ spread: new Spread(clock, () => half) }));
    const together = await refusals(() => ({}));
    assert.ok(together > 20, `by the plan alone ${together} reservations are refused`);
    assert.ok(apart * 3 < together, `${apart} reservations are refused, by the plan alone ${together}`);
  });
});
