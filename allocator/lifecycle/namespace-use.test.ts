// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, claimRecord, poolRecord, reservationRecord, viewOf } from "../../test/support/fixtures.ts";
import { NamespaceUse } from "./namespace-use.ts";

describe("what a namespace has beside a claim", () => {
  const of = (namespace: string, name: string) => ({ pool: "web", claim: { namespace, name } });
  const view = viewOf({
    pools: [poolRecord("web", "10.30.0.0/24"), poolRecord("other", "10.31.0.0/24")],
    reservations: [
      reservationRecord("10.30.0.1", of("shop", "a")),
      reservationRecord("10.30.0.2", of("shop", "a")), // its claim is listed with it, and has let it go since
      reservationRecord("10.30.0.3", of("shop", "b")),
      reservationRecord("10.30.0.4", of("shop", "c")), // cools
      reservationRecord("10.30.0.5", of("shop", "new")), // taken, and its claim is not in the list any more
      reservationRecord("10.30.0.6", of("bank", "d")),
    ],
  });
  const use = new NamespaceUse(view, "shop");
  const claim = (name: string, ...addresses: string[]) =>
    claimRecord({ name, addresses: addrs(...addresses) });
  use.enter(claim("a", "10.30.0.1", "10.30.0.2"));
  use.enter(claim("b", "10.30.0.3", "10.31.0.1"));

  const rows: readonly (readonly [string, ReturnType<typeof claim>, readonly [number, number]])[] = [
    ["is listed", claim("a", "10.30.0.1", "10.30.0.2"), [1, 2]],
    ["has one less by now", claim("a", "10.30.0.1"), [1, 3]],
    ["is not listed", claim("new", "10.30.0.5"), [3, 1]],
    ["holds addresses of two pools", claim("b", "10.30.0.3", "10.31.0.1"), [2, 2]],
    ["has what another one held", claim("c", "10.30.0.4"), [3, 1]],
  ];
  for (const [title, one, [held, cooling]] of rows) {
    it(`that ${title}`, () => {
      const found = use.beside(one, "web");
      assert.deepEqual([found.held.IPv4, found.cooling.IPv4], [held, cooling]);
    });
  }

  it("is nothing of a pool of which it has nothing", () => {
    const { held, cooling } = new NamespaceUse(view, "empty").beside(claim("a"), "web");
    assert.deepEqual([held.IPv4, cooling.IPv4], [0, 0]);
  });
});
