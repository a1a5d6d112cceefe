// SPDX-License-Identifier: Apache-2.0
// Lives of one seed after the other, in a process of its own: the parent sends RUNS and a SEED, and is told what came of them.

import { Disks } from "./journal-disk.ts";
import { hasSingles, type RunRequest, type Said } from "./parallel-runs.ts";
import { describe, trial } from "./property.ts";
import { Tally } from "./tally.ts";

const disks = new Disks();

async function live({ runs, seed, blocks, interfaces }: RunRequest): Promise<Said> {
  const tally = new Tally();
  const singles = hasSingles(seed);
  const failure = await trial({ disks, tally, runs, seed, blocks, singles, interfaces });
  const reported = failure && (await describe(failure, { disks, blocks, singles, interfaces }));
  return { counts: tally.counts(), ...(reported !== undefined && { told: reported }) };
}

let isLiving = false;

process.on("message", (request: RunRequest) => {
  isLiving = true;
  live(request).then(
    (said) => {
      isLiving = false;
      process.send?.(said);
    },
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => {
  disks.close();
  // whoever asked was ended: a life that goes on with closed disks did so for ever
  if (isLiving) process.kill(process.pid, "SIGKILL");
});
