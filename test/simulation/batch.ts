// SPDX-License-Identifier: Apache-2.0
// The lives of one seed, in a process of its own: node batch.ts RUNS SEED. What came of them goes to the parent.
import { Disks } from "./journal-disk.ts";
import { describe, trial } from "./property.ts";
import { Tally } from "./tally.ts";

const [runs = 0, seed = 0] = process.argv.slice(2).map(Number);
const disks = new Disks();
const tally = new Tally();
const failure = await trial({ disks, tally, runs, seed });
const told = failure && (await describe(failure, { disks }));
disks.close();
process.send?.({ counts: tally.counts(), ...(told !== undefined && { told }) });
process.disconnect?.();
