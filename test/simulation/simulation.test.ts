// SPDX-License-Identifier: Apache-2.0
// Webhooks, agents and reapers over one store, with everything that may go wrong. BERTH_SEED makes the same runs again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import { Disks } from "./journal-disk.ts";
import { storeOf, takingAnyway } from "./mutations.ts";
import { describe as described, trial } from "./property.ts";
import { simulate } from "./simulation.ts";
import { MOST_STEPS, type StepKind, stepsOf, WEIGHTS } from "./steps.ts";
import { tellStory } from "./story.ts";
import { Tally } from "./tally.ts";

const RUNS = 2_000;
const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);

/** Of the steps of a kind, that many do something at least; the others find nothing to do it with. */
const LEAST_SHARE = 0.2;

/** In a process of its own: node:test follows every promise of its own process, which doubles the time. */
async function runAll(runs: number, seed: number): Promise<{ readonly ok: boolean; readonly said: string }> {
  const main = join(import.meta.dirname, "main.ts");
  const args = [main, "--runs", String(runs), "--seed", String(seed)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const said = await text(child.stdout);
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  return { ok: code === 0, said };
}

describe("random lives of a small cluster", () => {
  const disks = new Disks();
  after(() => disks.close());

  it(`keep the invariants after every step: ${RUNS} runs of up to ${MOST_STEPS} steps`, async (t) => {
    t.diagnostic(`BERTH_SEED=${SEED}`);
    const { ok, said } = await runAll(RUNS, SEED);
    assert.ok(ok, said);
    assert.match(said, new RegExp(`^no invariant was broken: ${RUNS} runs, `, "m"));
  });

  it("are eventful", async () => {
    const tally = new Tally();
    assert.equal(await trial({ disks, tally, runs: 100, seed: SEED }), undefined);
    for (const kind of Object.keys(WEIGHTS) as StepKind[]) {
      assert.ok(tally.share(kind) > LEAST_SHARE, `${kind} is mostly idle:\n${tally.lines().join("\n")}`);
    }
    for (const kind of ["admit pod", "ADD", "DEL", "spooled DEL", "given up ADD", "repeated ADD"]) {
      assert.ok(tally.of(kind).done > 5, `${kind} is rare:\n${tally.lines().join("\n")}`);
    }
  });

  it("are the same lives, happening for happening, when they are lived again", async () => {
    for (const steps of fc.sample(stepsOf(), { numRuns: 10, seed: SEED })) {
      const once = tellStory((await simulate(steps, { disks, tells: true })).story);
      const again = tellStory((await simulate(steps, { disks, tells: true })).story);
      assert.ok(once.length > 0);
      assert.deepEqual(again, once);
    }
  });

  it("that break an invariant are made small, told, and lived again from seed and path", async () => {
    const broken = { disks, tampering: storeOf("webhook", takingAnyway) };
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
