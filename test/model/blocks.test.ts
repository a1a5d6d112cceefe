// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isFull } from "../support/runs.ts";
import { allocationOf, binder, reserver } from "./actors.ts";
import { granter, lostWord, successor, taker, watcher, word } from "./block-actors.ts";
import { BLOCKS } from "./blocks.ts";
import { type Bounds, explore } from "./explore.ts";
import { withoutBlocks, withoutHoles, withoutReservations, withoutWritingAgain } from "./lies.ts";
import { narrate } from "./report.ts";
import type { Actor, Scenario } from "./run.ts";
import { Y } from "./seeds.ts";
import { BLIND } from "./sight.ts";

/** In short what is found is not told in as few steps as there are, and what holds is explored in part. */
const FOUND: Bounds = isFull ? {} : { wide: 0 };
const HOLDS: Bounds = isFull ? {} : { states: 1_000 };

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
  it("finds an agent that gives from a block after it has said that it gives it back", async (t) => {
    const reported = BLOCKS.find(({ title }) => title.startsWith("an agent's word"));
    assert.ok(reported);
    const cidr = "10.0.0.2/32";
    const gives = (looksAt: "journal" | "watch alone") => {
      return { ...reported, actors: [word(cidr, "n1"), taker(cidr), watcher(cidr, Y, looksAt)] };
    };
    const { violation } = await explore(gives("watch alone"), FOUND);
    assert.ok(violation, "no violation found");
    t.diagnostic(narrate(violation));
    assert.match(violation.words, /its node does not have block 10\.0\.0\.2\/32 any more$/);
    assert.equal((await explore(gives("journal"), HOLDS)).violation, undefined);
  });

  it("finds an agent that gives from a block by another journal while a word of the lost one is on its way", async (t) => {
    const reported = BLOCKS.find(({ title }) => title.startsWith("a word whose journal is lost"));
    assert.ok(reported);
    const cidr = "10.0.0.2/32";
    const gives = (proves: "proves" | "does not") => {
      return { ...reported, actors: [lostWord(cidr, "n1"), taker(cidr), successor(cidr, Y, proves)] };
    };
    const { violation } = await explore(gives("does not"), FOUND);
    assert.ok(violation, "no violation found");
    t.diagnostic(narrate(violation));
    assert.match(violation.words, /its node does not have block 10\.0\.0\.2\/32 any more$/);
    assert.equal((await explore(gives("proves"), HOLDS)).violation, undefined);
  });

  it("finds a review that goes by a claim which its attempt may still withdraw for a block that has gone", async (t) => {
    const reported = BLOCKS.find(({ title: words }) =>
      words.startsWith("a block that has cooled goes, between two"),
    );
    assert.ok(reported);
    const [end, first, second] = reported.actors;
    assert.ok(end && first && second);
    const liar = { ...second, store: withoutWritingAgain };
    const { violation } = await explore({ ...reported, actors: [end, first, liar] }, FOUND);
    assert.ok(violation, "no violation found");
    t.diagnostic(narrate(violation));
    assert.match(violation.words, / had all its addresses, and was taken back without being released$/);
    assert.equal((await explore(reported, HOLDS)).violation, undefined);
  });

  for (const [title, actors] of rows) {
    it(`finds ${title}`, async (t) => {
      assert.ok(scenario);
      const reported: Scenario = { ...scenario, title, actors };
      const { violation } = await explore(reported, FOUND);
      assert.ok(violation, "no violation found");
      t.diagnostic(`${title}:\n${narrate(violation)}`);
      assert.match(violation.words, TWICE);
      const honest = actors.map(({ store: _, ...actor }) => actor);
      assert.equal((await explore({ ...reported, actors: honest }, HOLDS)).violation, undefined);
    });
  }
});
