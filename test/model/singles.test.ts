// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isFull } from "../support/runs.ts";
import { type Bounds, explore } from "./explore.ts";
import { withoutSecondLook, withoutSingles } from "./lies.ts";
import { narrate } from "./report.ts";
import type { Actor, Scenario } from "./run.ts";
import { Y } from "./seeds.ts";
import { ownGiver, SINGLES } from "./singles.ts";

/** In short what is found is not told in as few steps as there are, and what holds is explored in part. */
const FOUND: Bounds = isFull ? {} : { wide: 0 };
const HOLDS: Bounds = { states: isFull ? 3_000 : 1_000 };

function scenarioOf(begins: string, change: (actor: Actor) => Actor, only = /./): Scenario {
  const reported = SINGLES.find(({ title }) => title.startsWith(begins));
  assert.ok(reported);
  return { ...reported, actors: reported.actors.filter(({ name }) => only.test(name)).map(change) };
}

describe("the checker of single addresses of blocks", () => {
  const lyingTo = (name: RegExp, store: NonNullable<Actor["store"]>) => (actor: Actor) =>
    name.test(actor.name) ? { ...actor, store } : actor;
  const rows: readonly (readonly [string, string, RegExp, (actor: Actor) => Actor, RegExp])[] = [
    [
      "an owner that gives an address which it has given back, by its watch",
      "an address of a block that its owner gives back",
      /^(?!reserve)/,
      (actor) => (actor.name.endsWith("of the whole block") ? ownGiver(Y, "watch alone") : actor),
      /(is given twice|which its node has given back)/,
    ],
    [
      "an address that is made a block without a second look at the one around it",
      "an address is made a block of its own while",
      /./,
      lyingTo(/^grant 10/, withoutSecondLook),
      /is given twice/,
    ],
    [
      "a block that goes without a look for addresses of it that are blocks",
      "an address is made a block of its own while",
      /./,
      lyingTo(/^return/, withoutSingles),
      /is given twice/,
    ],
    [
      "a fixed address in a hole whose reserver and binder look for no block of its own",
      "a hole that is made a block",
      /./,
      lyingTo(/^(reserve|bind)/, withoutSingles),
      /is bound, and block 10\.0\.0\.2\/32 of n2 has its address to give/,
    ],
  ];
  for (const [title, begins, only, change, words] of rows) {
    it(`finds ${title}`, async (t) => {
      const { violation } = await explore(scenarioOf(begins, change, only), FOUND);
      assert.ok(violation, "no violation found");
      t.diagnostic(`${title}:\n${narrate(violation)}`);
      assert.match(violation.words, words);
      const honest = await explore(
        scenarioOf(begins, (actor) => actor, only),
        HOLDS,
      );
      assert.equal(honest.violation, undefined);
    });
  }
});
