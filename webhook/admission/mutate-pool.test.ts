// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { applied, deniedAs, type Json, poolObject } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { SINGLES_TOLD } from "./mutate-pool.ts";

const ROUTE = "/mutate/pools";
const RANGES = [{ cidr: "10.20.0.0/24" }, { cidr: "fd00::/64" }];
const SINGLES = { ipv4: 32, ipv6: 128 };

async function made(world: World, object: Json, over = {}): Promise<readonly [unknown, readonly string[]]> {
  const response = await send(world, ROUTE, object, over);
  assert.ok(response.allowed);
  const { spec } = applied(object, response) as { readonly spec: Json };
  return [spec["blockSize"], response.warnings ?? []];
}

describe("a pool that is to be made", () => {
  it("gives single addresses to pods that ask for nothing, if it is their default and says no size", async () => {
    await using world = await openWorld({});
    const plain = poolObject("any", { ranges: RANGES, default: true });
    assert.deepEqual(await made(world, plain), [SINGLES, [SINGLES_TOLD]]);
    assert.ok(SINGLES_TOLD.length <= 256, "the API server cuts longer ones");
  });

  it("is left alone otherwise", async () => {
    await using world = await openWorld({});
    const large = { ipv4: 26, ipv6: 122 };
    const said = (spec: Json) => made(world, poolObject("any", { ranges: RANGES, ...spec }));
    assert.deepEqual(await said({}), [undefined, []]);
    assert.deepEqual(await said({ default: true, blockSize: large }), [large, []]);
    assert.deepEqual(await said({ namespaceSelector: { matchLabels: { team: "bank" } } }), [undefined, []]);
  });

  it("keeps that size when its manifest is written again, and gets none later", async () => {
    await using world = await openWorld({});
    const plain = { ranges: RANGES, default: true };
    const update = (next: Json, before: Json) => {
      const over = { operation: "UPDATE", oldObject: poolObject("any", before) };
      return made(world, poolObject("any", next), over);
    };
    assert.deepEqual(await update(plain, { ...plain, blockSize: SINGLES }), [SINGLES, []]);
    assert.deepEqual(await update(plain, { ranges: RANGES }), [undefined, []]);
    assert.deepEqual(await update(plain, { ...plain, blockSize: { ipv4: 26 } }), [undefined, []]);
  });

  it("is refused when it is none", async () => {
    await using world = await openWorld({});
    const other = { ...poolObject("any", { ranges: RANGES, default: true }), kind: "IPClaim" };
    assert.match(
      deniedAs(await send(world, ROUTE, other)),
      /^OBJECT_INVALID: this webhook decides about IPPool/,
    );
  });
});
