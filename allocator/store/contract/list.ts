// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe } from "node:test";
import { fromNumber } from "../../ip/address.ts";
import type { Store } from "../store.ts";
import { bareClaim, nth, poolOf, reservationOf } from "./samples.ts";
import { caseOf, created, listed, MANY, type Open } from "./subject.ts";

/** list. */
export function listContract(open: Open): void {
  describe("list", () => {
    caseOf(open, "of nothing is empty", async ({ store }) => {
      assert.deepEqual(await listed(store, "pool"), []);
    });

    caseOf(open, "gives every record as it is stored, in the order of keys", async ({ store }) => {
      const names = ["b", "a", "a-b", "aa", "b.a", "a0"];
      const pools = await Promise.all(names.map((name) => created(store, "pool", poolOf(name))));
      const keys = (await listed(store, "pool")).map(({ key }) => key);
      assert.deepEqual(keys, ["a", "a-b", "a0", "aa", "b", "b.a"]);
      assert.deepEqual(new Set(await listed(store, "pool")), new Set(pools));
      for (const [namespace, name] of [
        ["shop", "a"],
        ["bank", "b"],
        ["shop", "0"],
      ] as const) {
        await created(store, "claim", bareClaim(name, { namespace }));
      }
      const claims = (await listed(store, "claim")).map(({ key }) => key);
      assert.deepEqual(claims, ["bank/b", "shop/0", "shop/a"]);
    });

    caseOf(
      open,
      "gives every record of many pages once, while others are written",
      async ({ store, many = MANY }) => {
        await fill(store, many);
        let running = true;
        const writer = churn(store, () => running);
        try {
          for (let i = 0; i < 5; i++) await checkMoment(store, many);
        } finally {
          running = false;
          await writer;
        }
      },
    );

    caseOf(open, "may be left in the middle", async ({ store, many = MANY }) => {
      await fill(store, many);
      for await (const stored of store.list("reservation")) {
        assert.equal(stored.key, nth(0));
        break;
      }
      await created(store, "reservation", reservationOf(low(0)));
      assert.equal((await listed(store, "reservation")).length, many + 1);
    });
  });
}

async function fill(store: Store, many: number): Promise<void> {
  const records = Array.from({ length: many }, (_, i) => reservationOf(nth(i)));
  for (let at = 0; at < records.length; at += 200) {
    await Promise.all(records.slice(at, at + 200).map((record) => created(store, "reservation", record)));
  }
}

/** Sorts before the filling (10.20.x.x), in which pages end ... */
function low(i: number) {
  return fromNumber(0x0a10_0000n + BigInt(i), "IPv4"); // 10.16.x.x
}

/** ... and after it. */
function high(i: number) {
  return fromNumber(0x0a30_0000n + BigInt(i), "IPv4"); // 10.48.x.x
}

/** Writes first low(i), then high(i), so that at no moment there are more high ones than low ones. */
async function churn(store: Store, running: () => boolean): Promise<void> {
  for (let i = 0; running(); i++) {
    await created(store, "reservation", reservationOf(low(i)));
    await created(store, "reservation", reservationOf(high(i)));
  }
}

/** A list that is put together of several moments has a high one without its low one sooner or later. */
async function checkMoment(store: Store, many: number): Promise<void> {
  const keys = (await listed(store, "reservation")).map(({ key }) => key);
  const lows = keys.filter((key) => key.startsWith("10.16.")).length;
  const highs = keys.filter((key) => key.startsWith("10.48.")).length;
  assert.equal(keys.length - lows - highs, many);
  assert.ok(lows === highs || lows === highs + 1, `${lows} low, ${highs} high`);
  assert.deepEqual(keys, [...new Set(keys)].sort());
}
