// SPDX-License-Identifier: Apache-2.0
// Webhooks, agents and garbage collectors over one store, with everything that may go wrong. BERTH_SEED makes the same runs again.
import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import { isFull, runsOf } from "../support/runs.ts";
import { Disks } from "./journal-disk.ts";
import { storeOf, takingAnyway } from "./mutations.ts";
import { live } from "./parallel-runs.ts";
import { describe as described, trial } from "./property.ts";
import { UNTIL_QUIET } from "./schedule.ts";
import { simulate } from "./simulation.ts";
import { MOST_STEPS, type StepKind, stepsOf, USUAL, WEIGHTS } from "./steps.ts";
import { Tally } from "./tally.ts";
import { traceOf } from "./trace.ts";

/** As many as one likes: make soak LIVES=100000. In short lives of three seeds: without blocks, with them, with two interfaces. */
const RUNS = Number(process.env["BERTH_LIVES"] || runsOf(isFull ? 2_000 : 1_200));
/** A short run lives the same lives each time: the search for rare ones, of which some are known and open, is for long runs. */
const SEED = Number(process.env["BERTH_SEED"] ?? (RUNS < 2_000 ? 1 : Date.now() % 1_000_000));

/** Of the steps of a kind, that many do something at least; the others find nothing to do it with. */
const LEAST_SHARE = 0.2;

describe("random lives of a small cluster", () => {
  const disks = new Disks();
  after(() => disks.close());

  it(`keep the invariants after every step of up to ${MOST_STEPS}, and are eventful`, async (t) => {
    t.diagnostic(`BERTH_SEED=${SEED}`);
    const { tally, told: reported } = await live({
      runs: RUNS,
      seed: SEED,
      processes: availableParallelism(),
      blocks: "half",
      interfaces: "third",
    });
    assert.equal(reported, undefined);
    assert.equal(tally.runs, RUNS);
    t.diagnostic(`${tally.runs} lives, ${tally.events} events`);
    const lines = tally.lines().join("\n");
    for (const kind of Object.keys(WEIGHTS) as StepKind[]) {
      if (USUAL[kind] === 0) continue;
      assert.ok(tally.share(kind) > LEAST_SHARE, `${kind} is mostly idle:\n${lines}`);
    }
    for (const kind of [
      "admit pod",
      "ADD",
      "DEL",
      "end pod",
      "replica pod",
      "rollout pod",
      "foreign pod",
      "failed create",
      "forge review",
      "skew",
      "lost journal",
      "spooled DEL",
      "given up ADD",
      "repeated ADD",
      "ADD from a block",
      "churn: create",
      "churn: scale",
      "churn: background",
      "churn: foreground",
    ]) {
      assert.ok(tally.of(kind).done > RUNS / 20, `${kind} is rare:\n${lines}`);
    }
  });

  it("are the same lives, happening for happening, when they are lived again", async () => {
    for (const steps of fc.sample(stepsOf(), { numRuns: runsOf(10, 4), seed: SEED })) {
      const once = traceOf((await simulate(steps, { disks, tells: true })).trace);
      const again = traceOf((await simulate(steps, { disks, tells: true })).trace);
      assert.ok(once.length > 0);
      assert.deepEqual(again, once);
    }
  });

  it("give a claim back whose pod had no UID, when the next pod of its name was given another one", async () => {
    const step = { a: 0, b: 0, events: UNTIL_QUIET, order: "old", trouble: 0, seed: 0 } as const;
    const { violation } = await simulate(
      [
        { ...step, kind: "apply", a: 678 },
        { ...step, kind: "pod", a: 168, b: 683, events: 0 },
        { ...step, kind: "apply" },
        { ...step, kind: "twice", events: 0 },
        { ...step, kind: "force", b: 5 },
        { ...step, kind: "withdraw" },
      ],
      { disks },
    );
    assert.equal(violation, undefined);
  });

  it("let a kubelet hear of a pod that was deleted in the last moment, and give its place to the next one", async () => {
    const step = { a: 0, b: 0, events: UNTIL_QUIET, order: "old", trouble: 0, seed: 0 } as const;
    const { violation } = await simulate(
      [
        { ...step, kind: "pod", a: 346 },
        { ...step, kind: "force", b: 221, events: 0 },
      ],
      { disks },
    );
    assert.equal(violation, undefined);
  });

  it("keep for a StatefulSet, whose review got no answer, what a pod of a former one used", async () => {
    const { violation } = await simulate(
      [
        { kind: "churn", a: 436, b: 119, events: 60, order: "any", trouble: 0.15, seed: 399761 },
        { kind: "namesake", a: 0, b: 5, events: 60, order: "old", trouble: 0.15, seed: 284332 },
        { kind: "calm", a: 0, b: 0, events: 0, order: "old", trouble: 0, seed: 0 },
      ],
      { disks, blocks: true },
    );
    assert.equal(violation, undefined);
  });

  it("refuse in words a pod of a former StatefulSet when the next one has its name's claim, with more addresses", async () => {
    const step = { a: 0, b: 0, events: UNTIL_QUIET, order: "old", trouble: 0, seed: 0 } as const;
    const { violation } = await simulate(
      [
        { ...step, kind: "apply", a: 200 },
        { ...step, kind: "race" },
        { ...step, kind: "pod", a: 404, events: 0 },
        { ...step, kind: "power", events: 0 },
        { ...step, kind: "deaf" },
        { ...step, kind: "withdraw" },
        { ...step, kind: "end" },
        { ...step, kind: "release", a: 511 },
        { ...step, kind: "apply", a: 853, b: 137, events: 0 },
      ],
      { disks },
    );
    assert.equal(violation, undefined);
  });

  it("refuse it in words, too, when the next one was scaled down and retains the claim", async () => {
    const step = { a: 0, b: 0, events: 60, order: "old", trouble: 0, seed: 0 } as const;
    const { violation } = await simulate(
      [
        { ...step, kind: "apply", a: 658, b: 24, events: 0 },
        { ...step, kind: "journal", b: 215, events: 0 },
        { ...step, kind: "block" },
        { ...step, kind: "pod", a: 4, events: 0 },
        { ...step, kind: "withdraw", events: 0 },
        { ...step, kind: "apply" },
        { ...step, kind: "release", events: 0 },
        { ...step, kind: "wait", a: 58 },
        { ...step, kind: "power", a: 217 },
        { ...step, kind: "race" },
        { ...step, kind: "apply", a: 784, b: 5 },
        { ...step, kind: "apply", a: 4, events: 0 },
        { ...step, kind: "vanish" },
      ],
      { disks, blocks: true },
    );
    assert.equal(violation, undefined);
  });

  it("keep a claim that one replica completed for another one, which finds that it had lost a reservation", async () => {
    const step = { a: 0, b: 0, events: 60, order: "old", trouble: 0, seed: 0 } as const;
    const { violation } = await simulate(
      [
        { ...step, kind: "cut" },
        { ...step, kind: "race", a: 10, b: 842, events: 2, order: "same" },
        { ...step, kind: "wait", a: 548, order: "any", trouble: 0.03, seed: 288_538 },
        { ...step, kind: "forge", events: 0 },
      ],
      { disks, blocks: true },
    );
    assert.equal(violation, undefined);
  });

  it("that break an invariant are made small, told, and lived again from seed and path", async () => {
    const broken = { disks, injection: storeOf("webhook", takingAnyway) };
    const failure = await trial({ ...broken, tally: new Tally(), runs: 20, seed: 1 });
    assert.ok(failure !== undefined && failure.steps.length <= 3, `${failure?.steps.length} steps`);
    const { seed, path, violation, steps } = failure;
    const again = await trial({ ...broken, tally: new Tally(), runs: 1, seed, path });
    assert.deepEqual([again?.violation, again?.steps], [violation, steps]);
    const words = await described(failure, broken);
    assert.match(words, /^run \d+ of seed 1 broke an invariant: /);
    assert.ok(words.includes(`again: make simulate SEED=1 AT=${path}\n`));
    assert.ok(words.endsWith(`\n${violation}`));
  });
});
