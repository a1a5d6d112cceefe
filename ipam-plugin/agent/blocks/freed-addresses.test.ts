// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Address } from "../../../allocator/ip/address.ts";
import { addr } from "../../../test/support/fixtures.ts";
import { FreedAddresses } from "./freed-addresses.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const START = Date.UTC(2026, 0, 1);
const LONG = addr("10.0.0.1");
const SHORT = addr("192.168.0.1");
const NONE = addr("fd00::1");

/** 10.0.0.0/8 cools for a day, 192.168.0.0/16 for half a minute, and the rest is of no pool. */
function cooldownOf(address: Address): number {
  return address.startsWith("10.") ? DAY : address.startsWith("192.") ? 30_000 : 0;
}

describe("freed addresses", () => {
  it("are remembered for as long as their own pool says, and for ten minutes at least", () => {
    const freed = new FreedAddresses(cooldownOf, START);
    for (const address of [LONG, SHORT, NONE]) freed.set(address, START);
    const known = (now: number) => {
      freed.forget(now);
      return [...freed.entries()].map(([address]) => address);
    };
    assert.deepEqual(known(START + 10 * MINUTE - 1), [LONG, SHORT, NONE]);
    assert.deepEqual(known(START + 10 * MINUTE), [LONG]);
    assert.deepEqual([freed.get(LONG), freed.size], [START, 1]);
    assert.deepEqual(known(START + DAY - 1), [LONG]);
    assert.deepEqual(known(START + DAY), []);
  });

  it("are all remembered while no pools are known", () => {
    let isKnown = false;
    const freed = new FreedAddresses((address) => (isKnown ? cooldownOf(address) : Infinity), START);
    freed.set(SHORT, START);
    freed.forget(START + DAY);
    assert.equal(freed.get(SHORT), START);
    isKnown = true;
    freed.forget(START + DAY);
    assert.equal(freed.get(SHORT), undefined);
  });

  it("cool for longer when their pool says so meanwhile, or is there again", () => {
    let cooldownMs = 60 * MINUTE;
    const freed = new FreedAddresses(() => cooldownMs, START);
    const knows = (now: number) => {
      freed.forget(now);
      return freed.get(LONG) !== undefined;
    };
    freed.set(LONG, START);
    assert.equal(knows(START + 30 * MINUTE), true);
    cooldownMs = 0; // its pool is gone
    assert.equal(knows(START + 40 * MINUTE), true);
    cooldownMs = DAY;
    assert.deepEqual(
      [60 * MINUTE, DAY - 1, DAY].map((ms) => knows(START + ms)),
      [true, true, false],
    );
  });

  it("are looked at a few at a time, however many a journal had", () => {
    let looks = 0;
    const freed = new FreedAddresses((address) => {
      looks++;
      return cooldownOf(address);
    }, START);
    for (let n = 0; n < 1_000; n++) freed.set(addr(`192.168.${n >> 8}.${n & 255}`), START);
    const most: number[] = [];
    for (let calls = 0; freed.size > 0; calls++, looks = 0) {
      freed.forget(START + DAY + calls);
      most.push(looks);
    }
    assert.ok(most.length <= 100 && Math.max(...most) <= 100, most.join());
  });

  it("are forgotten when they are in use again, however old", () => {
    const freed = new FreedAddresses(cooldownOf, START);
    freed.set(LONG, START);
    freed.forget(START + 20 * MINUTE);
    freed.delete(LONG);
    assert.deepEqual([freed.get(LONG), freed.size], [undefined, 0]);
  });

  it("count from now when a clock was wrong, and have the time that they had before", () => {
    const freed = new FreedAddresses(cooldownOf, START);
    freed.set(LONG, START + 365 * DAY);
    freed.set(SHORT, START - 1_000);
    freed.forget(START + 1);
    assert.deepEqual([freed.get(LONG), freed.get(SHORT)], [START + 1, START - 1_000]);
  });

  it("come out as they went in", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6()).map(addr);
    const both = fc.uniqueArray(address, { selector: (one) => one });
    fc.assert(
      fc.property(both, fc.nat(), (addresses, at) => {
        const freed = new FreedAddresses(cooldownOf, START);
        for (const one of addresses) freed.set(one, at);
        assert.deepEqual(
          [...freed.entries()],
          addresses.map((one) => [one, at]),
        );
      }),
    );
  });
});
