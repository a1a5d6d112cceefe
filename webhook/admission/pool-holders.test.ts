// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord } from "../../test/support/fixtures.ts";
import { type Json, poolObject } from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { pin } from "../testing/pool-reviews.ts";
import { warningsOfHolders } from "./pool-holders.ts";

const SPEC = { ranges: [{ cidr: "10.20.0.0/24" }] };
const forNamespaces = (...values: string[]): Json => ({
  matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values }],
});

async function warned(world: World, spec: Json): Promise<readonly string[]> {
  const change = { operation: "UPDATE", dryRun: true } as const;
  const { allowed, warnings = [] } = await send(world, "/validate/pools", poolObject("db", spec), change);
  assert.equal(allowed, true);
  return warnings;
}

describe("a pool that is closed to who has addresses of it", () => {
  const then = "each is kept while its pod runs, and the next pod of it is refused";

  it("says whose claims do not match its namespaceSelector any more", async () => {
    await using world = await openWorld({ pools: [poolRecord("db", "10.20.0.0/24")] });
    for (let n = 0; n < 5; n++) await admitPod(world, pin(`pod-${n}`, `10.20.0.7${n}`));
    assert.deepEqual(await warned(world, { ...SPEC, namespaceSelector: forNamespaces("bank") }), [
      `pool db is not open any more to the namespaces of 5 claims that have addresses of it (shop/pod-0, shop/pod-1, shop/pod-2 and 2 more): ${then}`,
    ]);
    for (const open of [forNamespaces("bank", "shop"), {}])
      assert.deepEqual(await warned(world, { ...SPEC, namespaceSelector: open }), []);
  });

  it("says it of podSelector without looking at pods, and of nobody where nothing is held", async () => {
    const podSelector = { matchLabels: { app: "mysql" } };
    await using world = await openWorld({ pools: [poolRecord("db", "10.20.0.0/24")] });
    assert.deepEqual(await warned(world, { ...SPEC, podSelector }), []);
    await admitPod(world, pin("licence", "10.20.0.70"));
    assert.deepEqual(await warned(world, { ...SPEC, podSelector }), [
      `pool db is not open any more to claims whose pods have not the labels of spec.podSelector: ${then}`,
    ]);
  });

  it("names no claims to who may not list them, and says nothing of those that it was closed to before", async () => {
    await using world = await openWorld({ pools: [poolRecord("db", "10.20.0.0/24")] });
    await admitPod(world, pin("licence", "10.20.0.70"));
    const of = async (was: Json) =>
      await warningsOfHolders(
        { ...world.admission, readAccess: { mayRead: async () => false } },
        {
          now: poolRecord("db", "10.20.0.0/24", { namespaceSelector: forNamespaces("bank") }),
          before: poolRecord("db", "10.20.0.0/24", was),
        },
        { username: "operator", uid: "", groups: [] },
      );
    assert.deepEqual(await of({}), [
      `pool db is not open any more to the namespaces of 1 claim that has addresses of it: ${then}`,
    ]);
    assert.deepEqual(await of({ namespaceSelector: forNamespaces("other") }), []);
  });
});
