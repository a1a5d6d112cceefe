// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { claimRecord, granted, poolRecord, reservationRecord } from "./fixtures.ts";
import { statefulPod } from "./objects.ts";
import { openWorld, type World } from "./world.ts";

async function storedClaim(world: World) {
  return (await world.all("claim"))[0] ?? assert.fail("there is no claim");
}

/** Each writes, and needs what those before it have written. */
const WRITES: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
  "making a record": ({ realStore }) => realStore.create("claim", claimRecord({ name: "db-0" })),
  "making one of another kind": ({ realStore }) =>
    realStore.create("reservation", reservationRecord("10.0.0.7", { pool: "web" })),
  "replacing one": async (world) => {
    const seen = await storedClaim(world);
    await world.realStore.replace("claim", seen, { ...seen.record, nonce: "another" });
  },
  "reporting what a claim is used by": async (world) =>
    await world.realStore.report(await storedClaim(world), {}),
  "keeping an object": ({ objects }) => objects.keep(granted(readObject(statefulPod("db", 0)))),
  "removing a record": async (world) => {
    await world.realStore.remove("claim", await storedClaim(world));
  },
};

describe("the dump of a world", () => {
  it("is another one after each write, and the same while nothing is written", async () => {
    await using world = await openWorld({ pools: [poolRecord("web", ["10.0.0.0/28"])] });
    const seen = [world.dump()];
    for (const [what, write] of Object.entries(WRITES)) {
      await write(world);
      assert.notEqual(world.dump(), seen.at(-1), what);
      seen.push(world.dump());
      await world.settle();
      await world.holdings();
      assert.equal(world.dump(), seen.at(-1), `after ${what}`);
    }
    assert.equal(new Set(seen).size, seen.length);
  });
});

describe("a world that has settled", () => {
  it("shows in its cache what was written last, in the store or by somebody who has it", async () => {
    await using world = await openWorld({ pools: [poolRecord("web", ["10.0.0.0/28"])] });
    const shown = () => [...world.cache.claims()].map(({ record }) => record.nonce);
    assert.deepEqual(shown(), []);
    await world.realStore.create("claim", claimRecord({ name: "db-0", nonce: "first" }));
    await world.settle();
    assert.deepEqual(shown(), ["first"]);
    for (const nonce of ["second", "third"]) {
      const seen = await storedClaim(world);
      await world.another(2).store.replace("claim", seen, { ...seen.record, nonce });
      await world.settle();
      await world.settle();
      assert.deepEqual(shown(), [nonce]);
    }
    await world.realStore.remove("claim", await storedClaim(world));
    await world.settle();
    assert.deepEqual(shown(), []);
  });
});
