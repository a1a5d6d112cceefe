// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { reserve as reserveAs } from "../../allocator/lifecycle/reserve.ts";
import { isFull, runsOf } from "../support/runs.ts";
import {
  allocationOf,
  binder,
  collectionOf,
  patientCollectionOf,
  repairer,
  reserver,
  review,
} from "./actors.ts";
import { type Bounds, explore } from "./explore.ts";
import {
  withoutDoubt,
  withoutLookingAgain,
  withoutMarks,
  withoutReadingBack,
  withoutWritingAgain,
} from "./lies.ts";
import { races } from "./race.ts";
import { narrate, summarise } from "./report.ts";
import { type Actor, Run, type Scenario, stageOf } from "./run.ts";
import { CHANGES } from "./scenarios.ts";
import { held, POOLS, X, Y } from "./seeds.ts";
import { BLIND, type Lags } from "./sight.ts";
import { recordsKey } from "./state-key.ts";

/** What there is time for here; main.ts explores all of it whole. */
const LONG: Bounds = { states: runsOf(1_000) };
const CHANGE: Bounds = isFull ? {} : { states: 250 };
const RACE: Bounds = { states: runsOf(5_200) };
const LAGGING_RACE: Bounds = { states: runsOf(300, 100) };
/** What is found is told in as few steps as there are only where there is time. */
const FOUND: Bounds = isFull ? {} : { wide: 0 };

async function assertHolds(t: TestContext, scenario: Scenario, bounds: Bounds = {}): Promise<void> {
  const explored = await explore(scenario, bounds);
  t.diagnostic(summarise(explored));
  assert.equal(explored.violation && narrate(explored.violation), undefined);
  assert.ok(explored.states > 1);
}

describe("every interleaving of three that meet over one address", () => {
  for (const scenario of races(3, "views that show nothing")) {
    it(scenario.title, (t) => assertHolds(t, scenario, RACE));
  }
  for (const scenario of races(3, "claims that do not lag, reservations as of the beginning of each")) {
    it(scenario.title, (t) => assertHolds(t, scenario, LAGGING_RACE));
  }
});

describe("every interleaving of four that meet over one address", () => {
  const four = ["a XY, b X, collect X, bind a", "a XY, b X, collect X, bind b"];
  for (const scenario of races(4, "views that show nothing")) {
    if (four.some((names) => scenario.title.startsWith(`${names}:`))) {
      it(scenario.title, (t) => assertHolds(t, scenario, RACE));
    }
  }
});

describe("every interleaving of what changes a claim", () => {
  for (const scenario of CHANGES) {
    it(scenario.title, (t) => assertHolds(t, scenario, scenario.long === true ? LONG : CHANGE));
  }
});

describe("the checker", () => {
  const pools = POOLS;
  const lags = BLIND;
  const reserve = reserver(allocationOf("a", { exact: [X] }), { lags });
  const bind = binder({ claim: "a" });
  const collect = collectionOf(X, { name: "collect" });
  const swap = reserver(allocationOf("a", { exact: [Y] }), { name: "swap" });
  const back = reserver(allocationOf("a", { exact: [X] }), { name: "back" });
  const UNDONE = / had all its addresses, and was taken back without being released$/;
  const UNRESERVED = /is bound and 10\.0\.0\.1 is not reserved for it$/;
  const rows: readonly (readonly [string, RegExp, Omit<Scenario, "title">, Actor])[] = [
    [
      "a garbage collector that does not mark",
      UNRESERVED,
      { pools, actors: [reserve, bind] },
      { ...collect, store: withoutMarks },
    ],
    [
      "a reserver that does not read back",
      /^reserve a was answered with claim shop\/a .* was never sure of all its addresses$/,
      { pools, actors: [collect] },
      { ...reserve, store: withoutReadingBack },
    ],
    [
      "a binder that does not look at the reservations",
      UNRESERVED,
      { pools, actors: [reserve, collect] },
      { ...bind, store: withoutDoubt },
    ],
    [
      "a swap that does not look at the claim again before it cools the old address",
      UNRESERVED,
      { pools, seed: held("a", [X]), actors: [back, bind] },
      { ...swap, store: withoutLookingAgain },
    ],
    [
      "a garbage collector that repairs a claim which its attempt may still undo",
      UNDONE,
      { pools, actors: [reserve, collect] },
      { ...repairer("a"), store: withoutWritingAgain },
    ],
    [
      "a review that completes a claim which its attempt may still undo",
      UNDONE,
      { pools, actors: [reserve], time: [8_000] },
      { ...review(allocationOf("a", { exact: [X] })), store: withoutWritingAgain },
    ],
  ];

  for (const [title, words, scenario, liar] of rows) {
    it(`finds ${title}`, async (t) => {
      const { actors } = scenario;
      const { violation } = await explore({ ...scenario, title, actors: [...actors, liar] }, FOUND);
      assert.ok(violation, "no violation found");
      t.diagnostic(`${title}:\n${narrate(violation)}`);
      assert.match(violation.words, words);
      const { store: _, ...honest } = liar;
      const control = await explore({ ...scenario, title, actors: [...actors, honest] }, LONG);
      assert.equal(control.violation, undefined);
    });
  }

  it("finds a garbage collector that comes too soon for those who rely on seconds", async () => {
    const scenario = { title: "stamped", pools, stampsSeconds: true, time: [400] } as const;
    const { violation } = await explore({ ...scenario, actors: [reserve, collect] }, FOUND);
    assert.match(violation?.words ?? "", /^reserve a was answered with .* never sure of all its addresses$/);
    const patient = patientCollectionOf(X);
    const actors = [reserve, patient, bind];
    const control = await explore({ ...scenario, time: [400, 8_000], actors }, CHANGE);
    assert.equal(control.violation, undefined);
  });

  it("finds a review that writes what only its pod may", async () => {
    const allocation = allocationOf("a", { exact: [Y] }, { request: { addresses: [Y] } });
    const writing: Actor = {
      name: "review",
      async act({ name, context, state }) {
        state.reviewers.add(name);
        await reserveAs(context, allocation, "pod");
      },
    };
    const scenario = { title: "forged", pools, seed: held("a", [X]) };
    const { violation } = await explore({ ...scenario, actors: [writing, bind] }, FOUND);
    assert.match(violation?.words ?? "", /^review changed claim shop\/a .*, and nobody has seen its pod$/);
    const control = await explore({ ...scenario, actors: [review(allocation), bind] }, CHANGE);
    assert.equal(control.violation, undefined);
  });

  it("tells the schedule of a garbage collector that does not mark, step by step", async () => {
    const actors = [reserve, { ...collect, store: withoutMarks }, bind];
    const { violation } = await explore({ title: "told", pools, actors });
    assert.deepEqual(violation && narrate(violation).split("\n"), [
      "  1  reserve a  starts",
      "  2  reserve a  get claim shop/a -> none",
      "  3  reserve a  create reservation 10.0.0.1: 10.0.0.1 for a, nonce reserve a~1 -> created 10.0.0.1 for a, nonce reserve a~1 (r1)",
      "  4  collect    starts",
      "  5  collect    get reservation 10.0.0.1 -> found 10.0.0.1 for a, nonce reserve a~1 (r1)",
      "  6  collect    get claim shop/a -> none",
      "  7  collect    get claim shop/a -> none",
      "  8  reserve a  create claim shop/a: [10.0.0.1], nonce reserve a~1 -> created [10.0.0.1], nonce reserve a~1 (r1)",
      "  9  bind a     starts",
      " 10  bind a     get claim shop/a -> found [10.0.0.1], nonce reserve a~1 (r1)",
      " 11  bind a     get reservation 10.0.0.1 -> found 10.0.0.1 for a, nonce reserve a~1 (r1)",
      " 12  bind a     replace claim shop/a r1: [10.0.0.1], nonce reserve a~1, bound to u-a on n1 -> replaced [10.0.0.1], nonce reserve a~1, bound to u-a on n1 (r2)",
      " 13  collect    remove reservation 10.0.0.1 r1 -> removed",
      "then: claim shop/a (10.0.0.1, nonce reserve a~1) is bound and 10.0.0.1 is not reserved for it",
    ]);
  });

  it("loses no content of the records by going on from each state once", async () => {
    const other = reserver(allocationOf("b", { exact: [X] }), { lags });
    const lagging: Lags = { claims: "start", reservations: "start" };
    const late = reserver(allocationOf("c", { pools: ["x", "y"] }), { lags: lagging });
    for (const actors of [
      [reserve, other],
      [reserve, collect],
      [late, other],
    ]) {
      const scenario = { title: "two", pools, actors };
      assert.equal((await explore(scenario)).records, (await everyRecords(scenario)).size);
    }
  });

  it("loses no content of the records by what reservers forget", async () => {
    const seed = held("a", [X]);
    const forgetful = await explore({ title: "forgetful", pools, seed, actors: [swap, back] });
    const mindful = [swap, back].map((actor) => ({ ...actor, forgets: false }));
    const whole = await explore({ title: "mindful", pools, seed, actors: mindful });
    assert.equal(forgetful.records, whole.records);
    assert.ok(forgetful.states < whole.states);
  });
});

/** What the records can be along every schedule there is. */
async function everyRecords(scenario: Scenario): Promise<Set<string>> {
  const stage = stageOf(scenario);
  const found = new Set<string>();
  const open: (readonly number[])[] = [[]];
  for (let schedule = open.pop(); schedule !== undefined; schedule = open.pop()) {
    const run = new Run(stage);
    for (const turn of schedule) await run.step(turn);
    found.add(recordsKey(run.state));
    for (const turn of run.enabled()) open.push([...schedule, turn]);
  }
  return found;
}
