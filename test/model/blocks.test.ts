// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allocationOf, binder, reserver } from "./actors.ts";
import { BLOCKS, granter } from "./blocks.ts";
import { explore } from "./explore.ts";
import { withoutBlocks, withoutHoles, withoutReservations } from "./lies.ts";
import { narrate } from "./report.ts";
import type { Actor, Scenario } from "./run.ts";
import { Y } from "./seeds.ts";
import { BLIND } from "./sight.ts";

describe("the checker of blocks", () => {
  const TWICE = /^claim shop\/a .* is bound, and block 10\.0\.0\.2\/32 of n1 has its address to give$/;
  const scenario = BLOCKS.find(({ title }) => title === "a block of one, and a fixed address in it");
  const wants = reserver(allocationOf("a", { exact: [Y] }), { lags: BLIND });
  const rows: readonly (readonly [string, readonly Actor[]])[] = [
    [
      "a reserver and a binder that do not look for blocks",
      [{ ...wants, store: withoutBlocks }, binder({ claim: "a" }, { store: withoutBlocks }), granter("n1")],
    ],
    [
      "a binder alone that does not look for blocks",
      [wants, binder({ claim: "a" }, { store: withoutBlocks }), granter("n1")],
    ],
    [
      "a grant that does not look for reservations",
      [wants, binder({ claim: "a" }), granter("n1", { store: withoutReservations })],
    ],
    [
      "a fixed address that does not become a hole of a block which is being granted",
      [{ ...wants, store: withoutHoles }, binder({ claim: "a" }, { store: withoutHoles }), granter("n1")],
    ],
  ];
  for (const [title, actors] of rows) {
    it(`finds ${title}`, async (t) => {
      assert.ok(scenario);
      const told: Scenario = { ...scenario, title, actors };
      const { violation } = await explore(told);
      assert.ok(violation, "no violation found");
      t.diagnostic(`${title}:\n${narrate(violation)}`);
      assert.match(violation.words, TWICE);
      const honest = actors.map(({ store: _, ...actor }) => actor);
      assert.equal((await explore({ ...told, actors: honest })).violation, undefined);
    });
  }
});
