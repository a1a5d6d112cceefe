// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, DB_POOL, granted, poolRecord } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import { fromNumber } from "../ip/address.ts";
import { reserve } from "./reserve.ts";
import { giveBack } from "./testing/given-back.ts";

describe("two at once", () => {
  it("for one address: one wins, and the other is told who", async () => {
    await using world = await openWorld({ pools: [poolRecord("p", "10.9.0.0/16")] });
    const processes = [world.context, world.another(2)] as const;
    const rounds = runsOf(1_000);
    for (let n = 0; n < rounds; n++) {
      const address = fromNumber(0x0a09_0001n + BigInt(n), "IPv4");
      const names = [`left-${n}`, `right-${n}`] as const;
      const [left, right] = await Promise.all(
        processes.map((process, i) =>
          reserve(process, podAllocation(world, names[i] ?? "", entries(address)), "pod"),
        ),
      );
      assert.ok(left && right);
      const refusals = [left, right].filter(isRefusal);
      assert.equal(refusals.length, 1, address);
      const winner = isRefusal(left) ? names[1] : names[0];
      assert.equal(refusals[0]?.details["holder"], `shop/${winner}`);
      assert.match(
        refusals[0]?.message ?? "",
        new RegExp(`^address ${address} in pool "p" is held by shop/${winner}`),
      );
    }
    await world.settle();
    assert.equal((await world.all("reservation")).length, rounds);
    await assertClean(world);
  });

  it("for one identity: one claim, and the same answer", async () => {
    for (let n = 0; n < runsOf(50); n++) {
      await using world = await openWorld({ pools: [DB_POOL], seed: n });
      const processes = [world.context, world.context, world.another(n + 1_000), world.another(n + 2_000)];
      const got = await Promise.all(
        processes.map((process) =>
          reserve(process, ordinalAllocation(world, "mysql-0", { pools: ["db"] }), "pod"),
        ),
      );
      const answers = new Set(got.map((answer) => granted(answer).claim.record.addresses.join(",")));
      assert.equal(answers.size, 1, [...answers].join(" or "));
      await world.settle();
      assert.deepEqual(Object.values(await world.holdings()), [...answers]);
      await assertClean(world);
    }
  });

  it("for the last addresses of a pool: as many win as there are, and nothing is left over", async () => {
    await using world = await openWorld({ pools: [poolRecord("p", ["10.9.0.0/28", "fd09::/126"])] });
    const processes = Array.from({ length: 12 }, (_, n) => world.another(100 + n));
    const got = await Promise.all(
      processes.map((process, n) =>
        reserve(process, podAllocation(world, `pod-${n}`, { pools: ["p"] }), "pod"),
      ),
    );
    assert.equal(got.filter((answer) => !isRefusal(answer)).length, 3);
    await world.settle();
    assert.equal((await world.all("reservation")).length, 6);
    await assertClean(world);
  });

  it("for one list of two families in opposite orders: never half of it each", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (let n = 0; n < runsOf(100); n++) {
      const [four, six] = addrs(`10.20.0.${100 + 1 + (n % 90)}`, `fd00:20::${n + 1}`);
      const requests = [
        podAllocation(world, `a-${n}`, entries(`${four},${six}`)),
        podAllocation(world, `b-${n}`, entries(`${six},${four}`)),
      ];
      const got = await Promise.all(
        requests.map((resolved, i) => reserve(world.another(n * 2 + i + 50), resolved, "pod")),
      );
      assert.equal(got.filter(isRefusal).length, 1, "one of the two gets both");
      await world.settle();
      await assertClean(world);
      for (const key of Object.keys(await world.holdings())) await giveBack(world, key);
      world.clock.advance(30_000);
      await world.collector().pass();
      await world.settle();
      assert.equal((await world.all("reservation")).length, 0);
    }
  });
});
