// SPDX-License-Identifier: Apache-2.0
// kill -9 at random moments, under load: what was answered stands. BERTH_SEED replays the choices, not the timing.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { runsOf } from "../support/runs.ts";
import { Campaign } from "./campaign.ts";

process.setMaxListeners(100); // each process that is started has one

const CYCLES = Number(process.env["BERTH_CYCLES"] ?? runsOf(50));
const SEED = Number(process.env["BERTH_SEED"] ?? Date.now() % 1_000_000);

describe("a stack that is killed", () => {
  // Two at once, because a cycle mostly waits for a process to start.
  it("has kept what it answered each time, and leaks nothing", async (t) => {
    console.log(`seed ${SEED}`);
    const failed = new AbortController();
    const campaigns = [SEED, SEED + 1].map((seed) => survive(t, seed, failed));
    const ends = await Promise.allSettled(campaigns);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  });
});

async function survive(t: TestContext, seed: number, failed: AbortController): Promise<void> {
  const campaign = await Campaign.start(seed);
  t.after(() => campaign.remove());
  try {
    let checked = 0;
    for (let cycle = 0; cycle < CYCLES && !failed.signal.aborted; cycle++) {
      await campaign.cycle();
      checked += campaign.promised;
      assert.deepEqual(await campaign.wrongs(), [], `seed ${seed}, cycle ${cycle}`);
    }
    console.log(`seed ${seed}: ${checked} promises checked, ${JSON.stringify(campaign.counts)}`);
    const nothing = { claims: [], holders: [], attached: [], findings: "" };
    assert.deepEqual(await campaign.leftovers(), nothing, `seed ${seed}, at the end`);
  } catch (error) {
    failed.abort();
    throw error;
  }
}
