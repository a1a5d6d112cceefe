// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, poolRecord } from "../../test/support/fixtures.ts";
import { type Bound, countedBy, roomWithin } from "./namespace-bounds.ts";
import { parsePool } from "./pool.ts";
import type { PoolSpec } from "./pool-spec.ts";

const NAME = "kubernetes.io/metadata.name";

function bounds(cidrs: string | readonly string[], over: Partial<PoolSpec> = {}): readonly Bound[] {
  return granted(parsePool(poolRecord("db", cidrs, over))).bounds;
}

describe("what one namespace may have of a pool", () => {
  it("is nine tenths of each family, if its author says nothing", () => {
    assert.deepEqual(bounds("10.20.0.0/24"), [{ kind: "share", most: 229, family: "IPv4", size: 254 }]);
    assert.deepEqual(
      bounds(["10.20.0.0/28", "fd00::/120"]).map(({ most }) => most),
      [13, 230],
    );
  });

  it("is all of a pool of fewer than ten addresses", () => {
    assert.deepEqual(bounds("10.20.0.0/29"), []);
  });

  it("is all of a pool that names the one namespace that it is for", () => {
    const one: readonly PoolSpec["namespaceSelector"][] = [
      { matchLabels: { [NAME]: "shop" } },
      { matchExpressions: [{ key: NAME, operator: "In", values: ["shop"] }] },
    ];
    for (const namespaceSelector of one) {
      assert.deepEqual(bounds("10.20.0.0/24", namespaceSelector ? { namespaceSelector } : {}), []);
    }
    const several: readonly PoolSpec["namespaceSelector"][] = [
      {},
      { matchLabels: { team: "shop" } },
      { matchExpressions: [{ key: NAME, operator: "In", values: ["shop", "bank"] }] },
      { matchExpressions: [{ key: NAME, operator: "NotIn", values: ["shop"] }] },
    ];
    for (const namespaceSelector of several) {
      assert.equal(bounds("10.20.0.0/24", namespaceSelector ? { namespaceSelector } : {}).length, 1);
    }
  });

  it("is what its author says, of both families together, and no bound where that is the whole pool", () => {
    assert.deepEqual(bounds("10.20.0.0/24", { limits: { perNamespace: 50 } }), [{ kind: "said", most: 50 }]);
    assert.deepEqual(bounds("10.20.0.0/24", { limits: { perNamespace: 254 } }), []);
    assert.deepEqual(bounds("fd00::/64", { limits: { perNamespace: 50 } }), [{ kind: "said", most: 50 }]);
  });

  it("counts what it is about", () => {
    const counts = { IPv4: 2, IPv6: 3 };
    assert.equal(countedBy({ kind: "said", most: 9 }, counts), 5);
    assert.equal(countedBy({ kind: "share", most: 9, family: "IPv6", size: 10 }, counts), 3);
    assert.equal(countedBy({ kind: "share", most: 9, family: "IPv4", size: 10 }, {}), 0);
  });

  it("leave room for what cools: as much again of what is said, and nothing more of a share", () => {
    const said = { kind: "said", most: 5 } as const;
    const share = { kind: "share", most: 9, family: "IPv4", size: 10 } as const;
    const use = (held: number, cooling: number) => ({ held: { IPv4: held }, cooling: { IPv4: cooling } });
    assert.deepEqual(
      [roomWithin(said, use(3, 5)), roomWithin(said, use(3, 6)), roomWithin(said, use(0, 10))],
      [2, 1, 0],
    );
    assert.deepEqual([roomWithin(share, use(3, 5)), roomWithin(share, use(3, 6))], [1, 0]);
  });
});
