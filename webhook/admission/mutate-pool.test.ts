// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { applied, deniedAs, type Json, poolObject } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

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
    const reported =
      "pool any has no spec.blockSize, and gets {ipv4: 32, ipv6: 128}: nodes get single addresses of it, as many as their pods need and two more each. That never changes";
    assert.deepEqual(await made(world, plain), [SINGLES, [reported]]);
    const [, [ofOne]] = await made(world, poolObject("any", { ranges: RANGES.slice(0, 1), default: true }));
    assert.match(ofOne ?? "", /gets \{ipv4: 32\}:/);
  });

  it("gives them to pods that it selects, and nodes none ahead", async () => {
    await using world = await openWorld({});
    const selector = { matchLabels: { team: "bank" } };
    const reported =
      "pool any has no spec.blockSize, and gets {ipv4: 32, ipv6: 128, ahead: 0}: pods that it selects and that ask for nothing get single addresses of it, too. Make it with blockSize: {} if it is only for pods that ask";
    for (const key of ["namespaceSelector", "podSelector", "nodeSelector"]) {
      const selecting = poolObject("any", { ranges: RANGES, [key]: selector });
      assert.deepEqual(await made(world, selecting), [{ ...SINGLES, ahead: 0 }, [reported]]);
    }
  });

  it("gives them to pods of its networks", async () => {
    await using world = await openWorld({});
    const reported =
      "pool any has no spec.blockSize, and gets {ipv4: 32, ipv6: 128, ahead: 0}: pods of its networks that ask for nothing get single addresses of it, too. Make it with blockSize: {} if it is only for pods that ask";
    for (const more of [{}, { nodeSelector: { matchLabels: { zone: "bj" } } }]) {
      const object = poolObject("any", { ranges: RANGES, networks: ["shop/vlan"], ...more });
      assert.deepEqual(await made(world, object), [{ ...SINGLES, ahead: 0 }, [reported]]);
    }
  });

  it("is left alone otherwise", async () => {
    await using world = await openWorld({});
    const large = { ipv4: 26, ipv6: 122 };
    const said = (spec: Json) => made(world, poolObject("any", { ranges: RANGES, ...spec }));
    assert.deepEqual(await said({}), [undefined, []]);
    assert.deepEqual(await said({ default: true, blockSize: large }), [large, []]);
    const namespaceSelector = { matchLabels: { team: "bank" } };
    assert.deepEqual(await said({ namespaceSelector, blockSize: {} }), [{}, []]);
    assert.deepEqual(await said({ namespaceSelector, authorization: "ServiceAccount" }), [undefined, []]);
    assert.deepEqual(await said({ networks: ["lan"], blockSize: {} }), [{}, []]);
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
    const ofNetwork = { ranges: RANGES, networks: ["lan"] };
    assert.deepEqual(await update({ ...ofNetwork, cooldown: "1m" }, ofNetwork), [undefined, []]);
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
